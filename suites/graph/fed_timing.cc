#include "suites/graph/fed_timing.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "suites/graph/call_timer.h"

namespace optrail::suites {
namespace {

// A model that computes so much slower beside the loader is reported.
constexpr double kSlowedDown = 1.1;
// The loader's threads are idle where they rest for more of their time.
constexpr double kIdle = .2;

graph::LoaderTimes Since(const graph::LoaderTimes& before,
                         const graph::LoaderTimes& now) {
  graph::LoaderTimes times;
  times.reading_ns = now.reading_ns - before.reading_ns;
  times.parsing_ns = now.parsing_ns - before.parsing_ns;
  times.resting_ns = now.resting_ns - before.resting_ns;
  times.waited_ns = now.waited_ns - before.waited_ns;
  times.copied_ns = now.copied_ns - before.copied_ns;
  return times;
}

// A timer that notes what the loader did during each sample.
class NotingTimer : public ops::Timer {
 public:
  struct Note {
    int64_t calls = 0, elapsed_ns = 0;
    graph::LoaderTimes times;
  };

  NotingTimer(ops::Timer& timer, const graph::Loader& loader)
      : timer_(timer), loader_(loader) {}

  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    return timer_.Prepare(calls);
  }
  absl::StatusOr<int64_t> TimeNs() override {
    const graph::LoaderTimes before = loader_.times();
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t elapsed_ns, timer_.TimeNs());
    notes_.push_back({calls_, elapsed_ns, Since(before, loader_.times())});
    return elapsed_ns;
  }
  absl::optional<int64_t> WorkedNs() const override {
    return timer_.WorkedNs();
  }
  int64_t max_calls() const override { return timer_.max_calls(); }
  void Fill(proto::Measurement* measurement) const override {
    timer_.Fill(measurement);
  }

  const std::vector<Note>& notes() const { return notes_; }

 private:
  ops::Timer& timer_;
  const graph::Loader& loader_;
  int64_t calls_ = 0;
  std::vector<Note> notes_;
};

// The loader's threads share the cores with the model. If the model waits for a
// core, that is a part of what feeding it costs, and disturbs nothing.
class SharedCoresMonitor : public ops::Monitor {
 public:
  explicit SharedCoresMonitor(std::unique_ptr<ops::Monitor> monitor)
      : monitor_(std::move(monitor)) {}

  void Begin() override { monitor_->Begin(); }
  bool End(int64_t elapsed_ns) override {
    return monitor_->End(elapsed_ns) && monitor_->WaitedNs() == 0;
  }
  void Fill(proto::Conditions* conditions) override {
    monitor_->Fill(conditions);
  }

 private:
  const std::unique_ptr<ops::Monitor> monitor_;
};

absl::Status Feed(const FedModel& model, graph::Loader& loader) {
  OPTRAIL_ASSIGN_OR_RETURN(const absl::Span<char* const> to,
                           model.feeder->Next());
  OPTRAIL_RETURN_IF_ERROR(loader.Next(to));
  return model.feeder->Send();
}

absl::Status CheckBytes(const FedModel& model,
                        const std::vector<graph::SampleInput>& inputs) {
  const std::vector<int64_t> bytes = model.feeder->bytes();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t brought = model.batch * inputs[i].type.bytes();
    if (i < bytes.size() && brought == bytes[i]) continue;
    return absl::InternalError(absl::StrCat(
        "a batch of input \"", inputs[i].name, "\" has ", brought,
        " bytes; the model reads ", i < bytes.size() ? bytes[i] : int64_t{0}));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> TimeAlone(const FedModel& model, ops::Device& device) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<CallTimer> timer,
      CallTimer::Create([&](const ops::Call&) { return model.compute(); },
                        device));
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_max_time_ns(absl::ToInt64Nanoseconds(absl::Seconds(1)));
  const std::unique_ptr<ops::Monitor> monitor = device.MakeMonitor();
  OPTRAIL_ASSIGN_OR_RETURN(const Sampling sampling,
                           TakeSamples(options, timer->get(), *monitor));
  return sampling.outcome == proto::OK ? sampling.time_ns
                                       : sampling.measurement.median_ns();
}

// One call is a round of batches. Returns the times of a batch.
absl::Status TimeRounds(const FedModel& model, int64_t batches,
                        graph::Loader& loader, ops::Device& device,
                        FedTimes& times) {
  const auto round = [&](const ops::Call&) -> absl::Status {
    for (int64_t b = 0; b < batches; ++b) {
      OPTRAIL_RETURN_IF_ERROR(Feed(model, loader));
      OPTRAIL_RETURN_IF_ERROR(model.compute());
    }
    return absl::OkStatus();
  };
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<CallTimer> rounds,
                           CallTimer::Create(round, device));
  NotingTimer timer(rounds->get(), loader);
  SharedCoresMonitor monitor(device.MakeMonitor());
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_sample_ns(absl::ToInt64Nanoseconds(absl::Milliseconds(50)));
  options.set_max_time_ns(absl::ToInt64Nanoseconds(absl::Seconds(2)));
  OPTRAIL_ASSIGN_OR_RETURN(times.fed, TakeSamples(options, timer, monitor));
  proto::Measurement& measurement = times.fed.measurement;
  double elapsed_ns = 0;
  graph::LoaderTimes all;
  for (const NotingTimer::Note& note : timer.notes()) {
    // Others were to warm up.
    if (note.calls != measurement.calls_per_sample()) continue;
    elapsed_ns += static_cast<double>(note.elapsed_ns);
    all.waited_ns += note.times.waited_ns;
    all.copied_ns += note.times.copied_ns;
    all.reading_ns += note.times.reading_ns;
    all.parsing_ns += note.times.parsing_ns;
    all.resting_ns += note.times.resting_ns;
  }
  const auto part = [](int64_t ns, double of_ns) {
    return of_ns > 0 ? static_cast<double>(ns) / of_ns : 0;
  };
  times.waits = part(all.waited_ns, elapsed_ns);
  times.copies = part(all.copied_ns, elapsed_ns);
  const auto threads_ns =
      static_cast<double>(all.reading_ns + all.parsing_ns + all.resting_ns);
  times.reads = part(all.reading_ns, threads_ns);
  times.parses = part(all.parsing_ns, threads_ns);
  times.rests = part(all.resting_ns, threads_ns);
  times.fed.time_ns /= static_cast<double>(batches);
  measurement.set_median_ns(measurement.median_ns() /
                            static_cast<double>(batches));
  measurement.set_calls_per_sample(measurement.calls_per_sample() * batches);
  return absl::OkStatus();
}

std::string Advice(const FedTimes& times) {
  if (times.rests > kIdle) {
    const int64_t ahead = times.loader.prefetch * times.batch;
    const bool too_few = times.loader.chunk > 1 &&
                         ahead / times.loader.chunk < times.loader.workers;
    return absl::StrCat(
        "They rest while the model waits: load more batches ahead (--prefetch)",
        too_few ? ", or smaller chunks (--chunk): those that may be loaded "
                  "ahead are too few for the threads."
        : times.reads >= times.parses
            ? ", or read more samples at a time (--chunk)."
            : ".");
  }
  if (times.reads >= times.parses) {
    return "Reading takes their time: read more samples at a time (--chunk), "
           "or start more of them (--workers).";
  }
  return "Parsing takes their time: start more of them while there are cores "
         "(--workers), or keep the samples in a format that is parsed sooner.";
}

std::string OfThreads(const FedTimes& times) {
  return absl::StrCat(
      "The loader's threads read for ", FormatPercent(times.reads),
      ", parse for ", FormatPercent(times.parses), " and rest for ",
      FormatPercent(times.rests), " of their time. ", Advice(times));
}

std::string OfGpu(const FedTimes& times, const graph::FeederOptions& feeder) {
  const std::string idle =
      absl::StrCat("the GPU computes nothing for ", FormatPercent(*times.idle),
                   " of the time");
  if (!times.is_held_back()) {
    return absl::StrCat("Its input does not hold the model back: ", idle, ".");
  }
  if (times.waits > kHeldBack && times.waits > times.copies) {
    return absl::StrCat("The loader holds the model back: ", idle,
                        ", and the thread that feeds it waits for the loader "
                        "for ",
                        FormatPercent(times.waits), ".\n", OfThreads(times));
  }
  const char* const next =
      feeder.sent_ahead == 0 ? "send batches while it computes (--sent_ahead=1)"
      : !feeder.pinned       ? "send from page-locked memory (--pinned)"
                             : "send more of them ahead (--sent_ahead), larger "
                               "batches, or smaller inputs";
  return absl::StrCat("Copies hold the model back: ", idle,
                      "; the thread that feeds it copies for ",
                      FormatPercent(times.copies),
                      " and waits for the loader for ",
                      FormatPercent(times.waits), "; next: ", next, ".");
}

}  // namespace

bool FedTimes::is_held_back() const { return idle.value_or(waits) > kHeldBack; }

absl::StatusOr<FedTimes> TimeFed(const FedModel& model,
                                 const graph::InputSource& source,
                                 const std::vector<graph::SampleInput>& inputs,
                                 const graph::LoaderOptions& options,
                                 ops::Device& device) {
  FedTimes times;
  times.loader = options;
  times.batch = model.batch;
  OPTRAIL_RETURN_IF_ERROR(CheckBytes(model, inputs));
  {
    // The model alone computes a batch of samples, too.
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::unique_ptr<graph::Loader> first,
        graph::Loader::Start(source, inputs, model.batch, options));
    OPTRAIL_RETURN_IF_ERROR(Feed(model, *first));
  }
  OPTRAIL_ASSIGN_OR_RETURN(times.alone_ns, TimeAlone(model, device));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<graph::Loader> loader,
      graph::Loader::Start(source, inputs, model.batch, options));
  const int64_t ahead = loader->capacity() / model.batch;
  OPTRAIL_RETURN_IF_ERROR(TimeRounds(model, 2 * ahead, *loader, device, times));
  if (device.hardware().device_kind() != proto::CPU && times.fed.time_ns > 0 &&
      times.alone_ns > 0) {
    times.idle = std::max(0., 1 - times.alone_ns / times.fed.time_ns);
  }
  return times;
}

std::string HeldBackText(const FedTimes& times,
                         const graph::FeederOptions& feeder) {
  if (times.idle) return OfGpu(times, feeder);
  std::string text = absl::StrCat(
      times.is_held_back() ? "The loader holds the model back: it"
                           : "The loader does not hold the model back: it",
      " waits for input ", FormatPercent(times.waits), " of the time.");
  if (times.is_held_back()) absl::StrAppend(&text, "\n", OfThreads(times));
  const double beside_ns = times.fed.time_ns * (1 - times.waits - times.copies);
  if (!times.is_held_back() && times.alone_ns > 0 &&
      beside_ns > kSlowedDown * times.alone_ns) {
    absl::StrAppend(&text, "\nBeside the loader the model computes for ",
                    FormatDurationNs(beside_ns), " a batch, alone for ",
                    FormatDurationNs(times.alone_ns),
                    ": they share the cores.");
  }
  return text;
}

}  // namespace optrail::suites
