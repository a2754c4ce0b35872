#include "tuning/replay/recordings/recording_log.h"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace optrail::tuning::recordings {
namespace {

bool ParseLine(const std::string& line, LogEntry& entry) {
  std::istringstream in(line);
  std::string compile_ms;
  if (!std::getline(in, entry.space, ';') ||
      !std::getline(in, entry.config, ';') ||
      !std::getline(in, entry.size, ';') ||
      !std::getline(in, entry.outcome, ';') ||
      !std::getline(in, compile_ms, ';')) {
    return false;
  }
  std::istringstream(compile_ms) >> entry.compile_ms;
  for (double ms; in >> ms;) entry.times_ms.push_back(ms);
  return entry.outcome != kOk || !entry.times_ms.empty();
}

}  // namespace

std::string FormatNumber(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.5g", number);
  return text;
}

std::string ToLine(const LogEntry& entry) {
  std::string line = entry.space + ";" + entry.config + ";" + entry.size + ";" +
                     entry.outcome + ";" + FormatNumber(entry.compile_ms) + ";";
  const char* separator = "";
  for (const double ms : entry.times_ms) {
    line += separator + FormatNumber(ms);
    separator = " ";
  }
  return line + "\n";
}

std::vector<LogEntry> ReadLog(const std::string& path) {
  std::vector<LogEntry> entries;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (in.eof()) break;  // no newline: the writer was stopped
    LogEntry entry;
    if (ParseLine(line, entry)) entries.push_back(entry);
  }
  return entries;
}

}  // namespace optrail::tuning::recordings
