#ifndef OPTRAIL_TUNING_SCHEDULE_TRACE_H_
#define OPTRAIL_TUNING_SCHEDULE_TRACE_H_

// A trace is the list of decisions that made a program out of an algorithm: a
// name and an integer each. It is a config like any other
// ("s0_at=2,s1_tile0=32", sorted by name), is hashed by that text, and replayed
// exactly: rules ask for their decisions by name, and whoever answers (a trace,
// a random number generator, both) decides what program comes out.
//
//   Decisions decisions = Decisions::Draw(rng);
//   absl::StatusOr<Program> program = Derive(algorithm, machine, decisions);
//   const Trace trace = decisions.trace();                  // what was drawn
//   Decisions again = Decisions::Replay(trace);             // the same program
//   Decisions near = Decisions::Vary(Mutated(trace, rng), rng);

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/random.h"

namespace optrail::tuning {

using Trace = std::map<std::string, int64_t>;

// "s0_at=2,s1_tile0=32"; "" for no decisions.
std::string TraceText(const Trace& trace);
// Accepts what TraceText prints, and nothing else. InvalidArgument says where.
absl::StatusOr<Trace> ParseTrace(absl::string_view text);

class Decisions {
 public:
  // Every decision is `trace`'s; Finish() complains of those that it lacks,
  // that are not among the options, and that nobody asked for.
  static Decisions Replay(Trace trace);
  // What the rules would do without a search.
  static Decisions Default();
  // `trace`'s as far as they are among the options; the others are usual.
  static Decisions Prefer(Trace trace);
  static Decisions Draw(Rng& rng);
  // Any option alike, also those that are never worth drawing: for attacks.
  static Decisions DrawAny(Rng& rng);
  // `trace`'s as far as they are among the options; the others are drawn.
  static Decisions Vary(Trace trace, Rng& rng);

  // One of `options`, none of which is there twice; `usual` is one of them.
  // A name is asked for once. What is drawn is one of `drawn` if given, where
  // an option may stand more than once: those that seldom help are tried less
  // often, those that mean nothing on this machine never, and all stay valid.
  int64_t Choose(const std::string& name, absl::Span<const int64_t> options,
                 int64_t usual, absl::Span<const int64_t> drawn = {});

  // The decisions so far.
  const Trace& trace() const { return trace_; }

  // InvalidArgument that names the decision, its value and the options.
  absl::Status Finish() const;

 private:
  Trace given_;
  bool strict_ = false;
  bool any_ = false;
  Rng* rng_ = nullptr;  // nullptr: the usual
  Trace trace_;
  absl::Status status_;
};

// `trace` without one to three of its decisions, to be varied.
Trace Mutated(const Trace& trace, Rng& rng);
// The decisions of each stage from either of the two.
Trace Crossed(const Trace& a, const Trace& b, Rng& rng);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SCHEDULE_TRACE_H_
