#ifndef OPTRAIL_TRACKER_TRACE_TRACE_H_
#define OPTRAIL_TRACKER_TRACE_TRACE_H_

// TraceOf lays the recorded times of a tuning session or a run out as a
// timeline in Chrome's trace event format, which Perfetto and speedscope open:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
//
//   const Trace trace = TraceOf(session);
//   OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically("trace.json", trace.json));
//
// Each track is a thread of the trace: what was compiled, measured in the
// search, ranked, and proven. A measurement holds its loading, its check
// against the reference and its samples, each "sample" or "disturbed sample".
//
// Records hold when a measurement began, when a trial was submitted, and how
// long everything took. Three positions follow from those by a rule, and the
// events say so in `placed`: samples lie back to back after the check, so that
// pauses between them show at the end; samples of configs that were measured
// together alternate; a compilation begins as soon as it was submitted and a
// compiler is free, with as few compilers as let every config be compiled
// before it is loaded.
//
// Times are microseconds from the beginning of the record.

#include <string>

#include "tracker/proto/run.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {

struct Trace {
  std::string json;
  int events = 0;  // without those that name tracks
  int tracks = 0;
};

Trace TraceOf(const proto::Session& session);
Trace TraceOf(const proto::Run& run);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_TRACE_TRACE_H_
