#include "graph/input/loader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/process/machine_memory.h"
#include "base/status_macros.h"

namespace optrail::graph {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int64_t kMostAhead = int64_t{1} << 20;

absl::Status CheckRange(const char* name, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; expected 1 to ", most));
}

class ThreadedLoader : public Loader {
 public:
  ThreadedLoader(const InputSource& source, int64_t batch,
                 const LoaderOptions& options)
      : source_(source),
        batch_(batch),
        chunk_(options.chunk),
        // The last chunk of a batch may hold samples of the next one.
        capacity_(std::max(options.prefetch,
                           (batch + options.chunk - 2) / batch + 1) *
                  batch) {}

  ~ThreadedLoader() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    space_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  absl::Status Allocate(const std::vector<SampleInput>& inputs) {
    double bytes = 0;
    for (const SampleInput& input : inputs) {
      sample_bytes_.push_back(input.type.bytes());
      bytes += static_cast<double>(sample_bytes_.back()) *
               static_cast<double>(capacity_);
    }
    const int64_t machine = MachineMemoryBytes();
    if (bytes > static_cast<double>(machine) / 2) {
      return absl::ResourceExhaustedError(
          absl::StrCat("batches that are loaded ahead take ", bytes,
                       " bytes; the machine has ", machine));
    }
    for (const int64_t size : sample_bytes_) {
      rings_.emplace_back(size * capacity_);
    }
    return absl::OkStatus();
  }

  void StartWorkers(int count) {
    for (int i = 0; i < count; ++i) {
      workers_.emplace_back([this] { Work(); });
    }
  }

  absl::Status Next(absl::Span<char* const> to) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const int64_t start = clock_.NowNs();
    // A sample that is wrong fails the batch that it belongs to.
    const auto has_failed = [&] {
      return !errors_.empty() &&
             errors_.begin()->first * chunk_ < consumed_ + batch_;
    };
    ready_.wait(lock, [&] {
      return done_chunks_ * chunk_ >= consumed_ + batch_ || has_failed();
    });
    const int64_t ready = clock_.NowNs();
    times_.waited_ns += ready - start;
    if (has_failed()) return errors_.begin()->second;
    lock.unlock();
    const int64_t slot = consumed_ % capacity_;
    for (size_t i = 0; i < rings_.size(); ++i) {
      std::memcpy(to[i], rings_[i].data() + slot * sample_bytes_[i],
                  batch_ * sample_bytes_[i]);
    }
    lock.lock();
    consumed_ += batch_;
    times_.copied_ns += clock_.NowNs() - ready;
    lock.unlock();
    space_.notify_all();
    return absl::OkStatus();
  }

  int64_t capacity() const override { return capacity_; }

  LoaderTimes times() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return times_;
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      const int64_t start = clock_.NowNs();
      // Nothing is loaded behind a sample that is wrong.
      space_.wait(lock, [&] {
        return stopped_ || (errors_.empty() && (next_chunk_ + 1) * chunk_ <=
                                                   consumed_ + capacity_);
      });
      times_.resting_ns += clock_.NowNs() - start;
      if (stopped_) return;
      const int64_t chunk = next_chunk_++;
      lock.unlock();
      LoaderTimes took;
      const absl::Status loaded = Load(chunk, took);
      lock.lock();
      times_.reading_ns += took.reading_ns;
      times_.parsing_ns += took.parsing_ns;
      if (!loaded.ok()) {
        errors_.emplace(chunk, loaded);
      } else {
        done_ahead_.insert(chunk);
        while (done_ahead_.erase(done_chunks_) > 0) ++done_chunks_;
      }
      ready_.notify_one();
    }
  }

  absl::Status Load(int64_t chunk, LoaderTimes& took) {
    const int64_t end = (chunk + 1) * chunk_;
    for (int64_t at = chunk * chunk_; at < end;) {
      const int64_t first = at % source_.samples();
      const int64_t count = std::min(end - at, source_.samples() - first);
      const int64_t start = clock_.NowNs();
      OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                               source_.Read(first, count));
      const int64_t read = clock_.NowNs();
      took.reading_ns += read - start;
      std::vector<char*> to(rings_.size());
      for (int64_t s = 0; s < count; ++s, ++at) {
        for (size_t i = 0; i < rings_.size(); ++i) {
          to[i] = rings_[i].data() + at % capacity_ * sample_bytes_[i];
        }
        OPTRAIL_RETURN_IF_ERROR(source_.Parse(first + s, texts[s], to));
      }
      took.parsing_ns += clock_.NowNs() - read;
    }
    return absl::OkStatus();
  }

  const InputSource& source_;
  const int64_t batch_, chunk_;
  const int64_t capacity_;  // of the ring, in samples
  const Clock& clock_ = *Clock::Real();
  std::vector<int64_t> sample_bytes_;
  // Each input has one. A sample is written before its chunk is done, and read
  // after that: nobody else touches it meanwhile.
  std::vector<std::vector<char>> rings_;

  mutable std::mutex mutex_;
  std::condition_variable ready_, space_;
  bool stopped_ = false;
  int64_t next_chunk_ = 0;                  // that nobody has taken
  int64_t done_chunks_ = 0;                 // all before it are done
  std::set<int64_t> done_ahead_;            // those that are done behind it
  int64_t consumed_ = 0;                    // samples
  std::map<int64_t, absl::Status> errors_;  // by chunk
  LoaderTimes times_;
  std::vector<std::thread> workers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Loader>> Loader::Start(
    const InputSource& source, const std::vector<SampleInput>& inputs,
    int64_t batch, const LoaderOptions& options) {
  OPTRAIL_RETURN_IF_ERROR(CheckRange("workers", options.workers, kMostWorkers));
  OPTRAIL_RETURN_IF_ERROR(CheckRange("prefetch", options.prefetch, kMostAhead));
  OPTRAIL_RETURN_IF_ERROR(CheckRange("chunk", options.chunk, kMostAhead));
  auto loader = std::make_unique<ThreadedLoader>(source, batch, options);
  OPTRAIL_RETURN_IF_ERROR(loader->Allocate(inputs));
  loader->StartWorkers(options.workers);
  return std::unique_ptr<Loader>(std::move(loader));
}

}  // namespace optrail::graph
