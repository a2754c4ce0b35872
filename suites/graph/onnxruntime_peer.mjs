// ONNX Runtime as a peer of `optrail graph run` (suites/graph/peer.h has the
// messages). FOLDER is what `optrail graph export` wrote:
//
//   npm install --ignore-scripts onnxruntime-node
//   optrail graph export model.onnx --out=/tmp/model
//   optrail graph run model.onnx --threads=1
//       --against="node suites/graph/onnxruntime_peer.mjs /tmp/model"
//
// The package is looked for from the current folder. THREADS is 1 by default.
import {readFileSync, readSync, writeSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const [folder, threads = '1'] = process.argv.slice(2);

function say(payload) {
  const body = Buffer.from(payload);
  const frame = Buffer.alloc(4 + body.length);
  frame.writeUInt32LE(body.length);
  body.copy(frame, 4);
  for (let at = 0; at < frame.length;) {
    try {
      at += writeSync(1, frame, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

function read(size) {
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size;) {
    const got = readSync(0, bytes, at, size - at, null);
    if (got === 0) process.exit(0);
    at += got;
  }
  return bytes;
}

const typed = {
  f32: ['float32', Float32Array], f64: ['float64', Float64Array],
  i64: ['int64', BigInt64Array], i32: ['int32', Int32Array],
  u8: ['uint8', Uint8Array], i8: ['int8', Int8Array], bool: ['bool', Uint8Array],
};

function tensor(ort, {type, dims}, bytes) {
  const [name, Values] = typed[type];
  const size = dims.reduce((a, b) => a * b, 1);
  const values = new Values(size);
  if (bytes) new Uint8Array(values.buffer).set(bytes);
  return new ort.Tensor(name, values, dims);
}

async function main() {
  const ort = createRequire(join(process.cwd(), 'x.js'))('onnxruntime-node');
  const model = JSON.parse(readFileSync(join(folder, 'model.json')));
  const session = await ort.InferenceSession.create(join(folder, model.model), {
    intraOpNumThreads: Number(threads), interOpNumThreads: 1,
    executionMode: 'sequential', graphOptimizationLevel: 'all',
  });
  const feeds = {}, fetches = {};
  for (const input of model.inputs) {
    feeds[input.name] = tensor(ort, input, readFileSync(join(folder, input.file)));
  }
  // The memory of results is there before calls, as ours is.
  for (const output of model.outputs) fetches[output.name] = tensor(ort, output);
  say(`ready onnxruntime-node ${ort.env.versions.node}`);
  let results;
  for (;;) {
    const [what, number] = read(read(4).readUInt32LE()).toString().split(' ');
    if (what === 'run') {
      const worked = process.cpuUsage();
      const begin = process.hrtime.bigint();
      for (let i = 0; i < Number(number); ++i) {
        results = await session.run(feeds, fetches);
      }
      const wall = process.hrtime.bigint() - begin;
      const {user, system} = process.cpuUsage(worked);
      say(`${wall} ${(user + system) * 1000}`);
    } else {
      const {data} = results[model.outputs[Number(number)].name];
      say(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    }
  }
}

main().catch((error) => {
  say(`error ${error.message}`);
  process.exit(1);
});
