#!/usr/bin/env python3
"""ONNX Runtime's Python package as a peer of `optrail graph run`.

The same as onnxruntime_peer.mjs, for machines that have Python in place of
Node. FOLDER is what `optrail graph export` wrote:

  optrail graph export model.onnx --out=/tmp/model
  optrail graph run model.onnx --threads=1
      --against="python3 suites/graph/onnxruntime_peer.py /tmp/model"

suites/graph/peer.h has the messages. THREADS is 1 by default.
"""
import json
import os
import struct
import sys
import time

import numpy
import onnxruntime

TYPES = {'f32': numpy.float32, 'f64': numpy.float64, 'i64': numpy.int64,
         'i32': numpy.int32, 'u8': numpy.uint8, 'i8': numpy.int8,
         'bool': numpy.bool_}


def say(payload):
    body = payload if isinstance(payload, bytes) else payload.encode()
    OUT.write(struct.pack('<I', len(body)) + body)
    OUT.flush()


def read(size):
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        sys.exit(0)
    return data


def main(folder, threads='1'):
    with open(os.path.join(folder, 'model.json')) as file:
        model = json.load(file)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    session = onnxruntime.InferenceSession(
        os.path.join(folder, model['model']), options,
        providers=['CPUExecutionProvider'])
    # The memory of results is there before calls, as ours is.
    binding = session.io_binding()
    results = []
    for i in model['inputs']:
        values = numpy.fromfile(os.path.join(folder, i['file']),
                                TYPES[i['type']]).reshape(i['dims'])
        binding.bind_ortvalue_input(
            i['name'], onnxruntime.OrtValue.ortvalue_from_numpy(values))
    for o in model['outputs']:
        results.append(onnxruntime.OrtValue.ortvalue_from_numpy(
            numpy.zeros(o['dims'], TYPES[o['type']])))
        binding.bind_ortvalue_output(o['name'], results[-1])
    say('ready onnxruntime ' + onnxruntime.__version__)
    while True:
        what, number = read(struct.unpack('<I', read(4))[0]).decode().split()
        if what == 'run':
            worked = time.process_time_ns()
            begin = time.perf_counter_ns()
            for _ in range(int(number)):
                session.run_with_iobinding(binding)
            wall = time.perf_counter_ns() - begin
            say('%d %d' % (wall, time.process_time_ns() - worked))
        else:
            say(results[int(number)].numpy().tobytes())


# What prints, prints for people.
OUT = os.fdopen(os.dup(1), 'wb')
os.dup2(2, 1)
try:
    main(*sys.argv[1:])
except Exception as error:  # the message says why
    say(('error %s: %s' % (type(error).__name__, error))[:500])
    sys.exit(1)
