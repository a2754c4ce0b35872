// What recording a run costs: processor time, and how often the disk is made to
// wait (syncs), which on a spinning or remote disk is nearly all of the time.
//
//   bazel run //tracker/history:record_benchmark

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file/file_system.h"
#include "base/random.h"
#include "benchmark/benchmark.h"
#include "tracker/history/history.h"

namespace optrail::tracker {
namespace {

constexpr int64_t kStart = 1795000000LL * 1000000000;

// The machine's file system; counts.
class CountingFileSystem : public FileSystem {
 public:
  int64_t syncs() const { return syncs_; }

  int Sync(int fd) override {
    ++syncs_;
    return real_.Sync(fd);
  }

  int Open(const std::string& path, int flags, int mode) override {
    return real_.Open(path, flags, mode);
  }
  int Close(int fd) override { return real_.Close(fd); }
  ssize_t Read(int fd, void* buffer, size_t size_bytes) override {
    return real_.Read(fd, buffer, size_bytes);
  }
  ssize_t Write(int fd, const void* data, size_t size_bytes) override {
    return real_.Write(fd, data, size_bytes);
  }
  int Truncate(int fd, int64_t size_bytes) override {
    return real_.Truncate(fd, size_bytes);
  }
  int Rename(const std::string& from, const std::string& to) override {
    return real_.Rename(from, to);
  }
  int Link(const std::string& from, const std::string& to) override {
    return real_.Link(from, to);
  }
  int Unlink(const std::string& path) override { return real_.Unlink(path); }
  int MakeDirectory(const std::string& path, int mode) override {
    return real_.MakeDirectory(path, mode);
  }
  int List(const std::string& path, std::vector<std::string>* names) override {
    return real_.List(path, names);
  }
  int Stat(const std::string& path, FileInfo* info) override {
    return real_.Stat(path, info);
  }
  int LinkStat(const std::string& path, FileInfo* info) override {
    return real_.LinkStat(path, info);
  }
  int StatDescriptor(int fd, FileInfo* info) override {
    return real_.StatDescriptor(fd, info);
  }
  int Lock(int fd, bool wait) override { return real_.Lock(fd, wait); }
  int64_t LockHolder(int fd) override { return real_.LockHolder(fd); }

 private:
  FileSystem& real_ = *FileSystem::Real();
  int64_t syncs_ = 0;
};

// `measurements` processes of 50 samples each, five to a benchmark.
proto::Run MakeRun(int64_t measurements, Rng& rng) {
  proto::Run run;
  run.set_started_unix_ns(kStart);
  run.set_suite("large");
  run.mutable_hardware()->set_id("test-2c");
  for (int64_t i = 0; i < measurements; ++i) {
    if (i % 5 == 0) {
      proto::BenchmarkResult* result = run.add_results();
      result->mutable_key()->set_operator_name(absl::StrCat("BM_", i));
      result->set_outcome(proto::OK);
    }
    proto::Measurement* measurement =
        run.mutable_results(run.results_size() - 1)->add_measurements();
    measurement->set_calls_per_sample(100);
    measurement->set_median_ns(1000);
    for (int sample = 0; sample < 50; ++sample) {
      measurement->add_sample_ns(
          static_cast<int64_t>(1e5 * std::exp(.01 * rng.Gaussian())));
    }
  }
  return run;
}

// The argument is the number of measurements in the run.
void BM_Record(benchmark::State& state) {
  std::string dir = "/tmp/record_benchmark_XXXXXX";
  OPTRAIL_CHECK(mkdtemp(dir.data()) != nullptr) << dir;
  CountingFileSystem fs;
  const History history = *History::Open(dir, &fs);
  Rng rng(1);
  proto::Run run = MakeRun(state.range(0), rng);
  for (auto _ : state) {
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    OPTRAIL_CHECK(history.AppendRun(run).ok());
  }
  state.counters["syncs"] =
      static_cast<double>(fs.syncs()) / static_cast<double>(state.iterations());
  state.counters["bytes"] = static_cast<double>(run.ByteSizeLong());
  OPTRAIL_CHECK(std::system(absl::StrCat("rm -rf ", dir).c_str()) == 0);
}
BENCHMARK(BM_Record)->Arg(5)->Arg(500)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace optrail::tracker
