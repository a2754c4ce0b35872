// Whatever the bytes are, a command template, a metric's declaration and a
// command's output are answered without a crash.
//
//   bazel build --config=fuzz //tuning/command/evaluation:command_fuzzer
//   tar -C /tmp -xzf tuning/command/evaluation/command_corpus.tar.gz
//   bazel-bin/tuning/command/evaluation/command_fuzzer /tmp/command_corpus

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/check.h"
#include "tuning/command/command_template.h"
#include "tuning/command/metric.h"
#include "tuning/session/objective.h"
#include "tuning/session/parse_objective.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using optrail::tuning::CommandTemplate;
  using optrail::tuning::Metric;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);

  const auto command = CommandTemplate::Parse(text, {"k"});
  if (command.ok()) {
    OPTRAIL_CHECK(command->Fill({{"k", std::string(text)}}).size() >=
                  text.size());
  }
  const auto declared = optrail::tuning::ParseObjective(text);
  if (declared.ok()) {
    OPTRAIL_CHECK(std::isfinite(optrail::tuning::CostOf(*declared, 1)));
  }

  // The first line is the pattern, the rest what the command printed.
  std::vector<Metric> metrics(1);
  metrics[0].objective.set_metric("a.b");
  const size_t end = text.find('\n');
  const absl::string_view output =
      end == absl::string_view::npos ? text : text.substr(end + 1);
  const auto from_json = ReadMetric(metrics[0], output);
  if (from_json.ok()) OPTRAIL_CHECK(*from_json > 0);
  const std::string pattern = "a.b=" + std::string(text.substr(0, end));
  if (SetPattern(pattern, metrics).ok()) {
    const auto by_pattern = ReadMetric(metrics[0], output);
    if (by_pattern.ok()) OPTRAIL_CHECK(*by_pattern > 0);
  }
  return 0;
}
