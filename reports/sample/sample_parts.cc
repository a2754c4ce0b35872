#include "reports/sample/sample_parts.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "reports/report_data.h"

namespace optrail::reports {
namespace {

// Planted is a change of some level, and how far along the history it came.
struct Planted {
  double at;
  const char* subject;
};
constexpr Planted kPlanted[] = {
    {0.35, "matmul: pack B panels once per block"},
    {0.5, "build: newer compiler"},
    {0.55, "layer_norm: fuse scale and shift"},
    {37 / 60., "parser: validate every field"},
    {0.7, "softmax: check that rows are finite"},
    {48 / 60., "scanner: sixteen bytes at once"},
    {0.86, "attention: compute the mask on the fly"},
    {0.955, "embedding_bag: check indices"},
};

const char* const kSubjects[] = {
    "thread pool: claim rows in batches",
    "docs: how the gate decides",
    "conv2d: direct path for 1x1 kernels",
    "store: verify entries again",
    "tests: more shapes",
    "device: huge pages where they can be had",
};

std::string SubjectAt(int position, int commits) {
  for (const Planted& planted : kPlanted) {
    const double first = planted.at * commits;
    if (position >= first && position - 1 < first) return planted.subject;
  }
  return kSubjects[position % std::size(kSubjects)];
}

std::string HexId(uint64_t seed, int digits) {
  Rng rng(seed);
  std::string id;
  while (static_cast<int>(id.size()) < digits) {
    absl::StrAppendFormat(&id, "%016x", rng());
  }
  return id.substr(0, digits);
}

}  // namespace

std::vector<SampleOperator> SampleOperators() {
  return {
      {"matmul", {{"m", 512}, {"n", 512}, {"k", 512}}, 5.1e6, 3.4, 0.78, 85},
      {"softmax", {{"rows", 4096}, {"cols", 1024}}, 2.3e6, 1.6, 0.83, 0.6},
      {"layer_norm", {{"rows", 4096}, {"cols", 1024}}, 1.9e6, 1.35, 0.71, 1},
      {"attention",
       {{"heads", 16}, {"seq", 512}, {"dim", 64}},
       9.6e6,
       2.6,
       0.52,
       120},
      {"conv2d",
       {{"c", 64}, {"h", 56}, {"w", 56}, {"k", 64}},
       7.4e6,
       2.1,
       0.61,
       60},
      {"add", {{"n", 1 << 22}}, 1.2e6, 1.02, 0.94, 0.083},
      {"embedding_bag",
       {{"rows", 200000}, {"dim", 64}, {"bags", 2048}},
       8.1e5,
       1.22,
       0.48,
       0},
  };
}

std::string SampleRecordId(int64_t unix_ns, uint64_t seed) {
  return absl::StrCat(
      absl::FormatTime("%Y%m%dT%H%M%SZ", absl::FromUnixNanos(unix_ns),
                       absl::UTCTimeZone()),
      "-", HexId(seed, 12));
}

int64_t CommitTime(const SampleOptions& options, int position) {
  return options.end_unix_ns -
         (options.commits - 1 - position) * kCommitEveryNs;
}

proto::Commit MakeCommit(const SampleOptions& options, int position) {
  proto::Commit commit;
  commit.set_id(HexId(1000 + position, 40));
  commit.set_branch("main");
  commit.set_first_parent_position(400 + position);
  commit.set_commit_unix_ns(CommitTime(options, position));
  commit.set_subject(SubjectAt(position, options.commits));
  if (options.hostile_names && position % 7 == 3) {
    const std::vector<std::string> names = HostileNames();
    commit.set_subject(names[position % names.size()]);
  }
  return commit;
}

proto::Hardware MakeHardware(const SampleHardware& sample) {
  proto::Hardware hardware;
  hardware.set_id(sample.id);
  hardware.set_device_kind(sample.device);
  hardware.set_model(sample.model);
  hardware.set_cores(sample.cores);
  hardware.set_memory_bytes(int64_t{64} << 30);
  if (sample.device == proto::CPU) {
    hardware.set_l1d_bytes(32 << 10);
    hardware.set_l2_bytes(1 << 20);
  }
  hardware.set_virtual_machine(sample.device == proto::CPU);
  return hardware;
}

proto::Toolchain MakeToolchain(bool newer) {
  proto::Toolchain toolchain;
  toolchain.set_compiler(newer ? "g++ 13.2.0" : "g++ 12.2.0");
  toolchain.set_flags("-O2");
  toolchain.set_compilation_mode("opt");
  toolchain.set_os("Debian GNU/Linux 12 (bookworm)");
  return toolchain;
}

proto::Shape MakeShape(const SampleOperator& op, int index) {
  proto::Shape shape;
  for (size_t d = 0; d < op.dims.size(); ++d) {
    proto::Dim* dim = shape.add_dims();
    dim->set_name(op.dims[d].first);
    dim->set_value(d == 0 ? op.dims[d].second * (index + 1)
                          : op.dims[d].second);
  }
  shape.add_data_types(proto::F32);
  return shape;
}

proto::Run MakeRunHeader(const SampleOptions& options, int position,
                         int hardware) {
  const SampleHardware& sample = kSampleHardware[hardware];
  const int64_t unix_ns =
      CommitTime(options, position) + (1 + hardware) * kHourNs / 6;
  const double at = static_cast<double>(position) / options.commits;
  proto::Run run;
  run.set_run_id(SampleRecordId(unix_ns, position * 10 + hardware));
  run.set_started_unix_ns(unix_ns);
  run.set_elapsed_ns(90 * int64_t{1000000000});
  run.set_suite("smoke");
  run.set_source(kMadeUpSource);
  *run.mutable_commit() = MakeCommit(options, position);
  *run.mutable_hardware() = MakeHardware(sample);
  *run.mutable_toolchain() = MakeToolchain(hardware == 1 && at >= 0.5);
  return run;
}

std::vector<std::string> HostileNames() {
  return {
      "</script><script>document.title='owned'</script>",
      "<img src=x onerror=\"document.title='owned'\">",
      "<!--<script>",
      "\"quoted' & <b>bold</b> {{data}} \\ end",
      "\xe2\x80\xaegnp.exe \xe2\x81\xa6rtl\xe2\x80\xac",
      std::string("nul\0bell\x07tab\tnewline\n", 22),
      "line\xe2\x80\xa8separator \xff\xfe invalid",
      "__proto__",
      std::string(400, 'w'),
  };
}

}  // namespace optrail::reports
