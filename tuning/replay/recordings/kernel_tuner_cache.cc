#include "tuning/replay/recordings/kernel_tuner_cache.h"

#include <map>
#include <numeric>

namespace optrail::tuning::recordings {
namespace {

template <typename Items, typename Format>
std::string Join(const Items& items, const char* separator, Format format) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += format(item);
  }
  return text;
}

std::string Quoted(const std::string& text) { return '"' + text + '"'; }

std::string ToText(int value) { return std::to_string(value); }

std::string CacheLine(const Space& space, const Config& config,
                      const LogEntry& entry) {
  std::string line = Quoted(entry.config) + ": {";
  for (size_t i = 0; i < config.size(); ++i) {
    line += Quoted(space.knobs[i].name) + ": " + ToText(config[i]) + ", ";
  }
  if (entry.outcome == kOk) {
    const std::vector<double>& times = entry.times_ms;
    const double sum = std::accumulate(times.begin(), times.end(), 0.0);
    line += "\"time\": " + FormatNumber(sum / times.size()) + ", \"times\": [" +
            Join(times, ", ", FormatNumber) + "]";
  } else {
    line += "\"time\": " + Quoted(entry.outcome);
  }
  return line + ", \"compile_time\": " + FormatNumber(entry.compile_ms) + "}";
}

}  // namespace

std::string ToKernelTunerCache(const Space& space, const Size& size,
                               const std::vector<LogEntry>& entries,
                               const std::string& device_name, int& missing) {
  std::map<std::string, const LogEntry*> by_config;
  for (const LogEntry& entry : entries) {
    if (entry.space == space.name && entry.size == size.name) {
      by_config[entry.config] = &entry;
    }
  }
  std::vector<std::string> lines;
  missing = 0;
  for (const Config& config : ValidConfigs(space)) {
    const auto found = by_config.find(ConfigKey(config));
    if (found == by_config.end()) {
      ++missing;
    } else {
      lines.push_back(CacheLine(space, config, *found->second));
    }
  }
  const auto name = [](const Knob& knob) { return Quoted(knob.name); };
  const auto values = [](const Knob& knob) {
    return Quoted(knob.name) + ": [" + Join(knob.values, ", ", ToText) + "]";
  };
  return "{\"device_name\": " + Quoted(device_name) +
         ",\n\"kernel_name\": " + Quoted(space.name) +
         ",\n\"problem_size\": " + Quoted(size.name) +
         ",\n\"tune_params_keys\": [" + Join(space.knobs, ", ", name) +
         "],\n\"tune_params\": {" + Join(space.knobs, ",\n", values) +
         "},\n\"objective\": \"time\",\n\"cache\": {\n" +
         Join(lines, ",\n", [](const std::string& line) { return line; }) +
         "\n}}\n";
}

}  // namespace optrail::tuning::recordings
