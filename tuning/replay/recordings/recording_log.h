#ifndef OPTRAIL_TUNING_REPLAY_RECORDINGS_RECORDING_LOG_H_
#define OPTRAIL_TUNING_REPLAY_RECORDINGS_RECORDING_LOG_H_

// The log that record_cuda_spaces appends to: a line per config and size,
//
//   space;config;size;outcome;compile_ms;ms ms ms
//
// so that what a run has done is kept however it ends. Not the format that
// replay reads: write_caches makes that from it.

#include <string>
#include <vector>

namespace optrail::tuning::recordings {

inline constexpr char kOk[] = "ok";
// The words of Kernel Tuner's caches.
inline constexpr char kCompilationFailed[] = "CompilationFailedConfig";
inline constexpr char kRuntimeFailed[] = "RuntimeFailedConfig";

struct LogEntry {
  std::string space;
  std::string config;  // ConfigKey
  std::string size;
  std::string outcome = kOk;
  double compile_ms = 0;
  std::vector<double> times_ms;  // empty after a failure
};

// With five significant digits, and a newline at the end.
std::string ToLine(const LogEntry& entry);

// Leaves out lines that are not complete, as the last of a run that was
// stopped. No file is an empty log.
std::vector<LogEntry> ReadLog(const std::string& path);

// "0.012345": five significant digits.
std::string FormatNumber(double number);

}  // namespace optrail::tuning::recordings

#endif  // OPTRAIL_TUNING_REPLAY_RECORDINGS_RECORDING_LOG_H_
