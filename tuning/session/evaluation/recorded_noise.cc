#include "tuning/session/evaluation/recorded_noise.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "tuning/replay/recording.h"

namespace optrail::tuning {
namespace {

bool Belongs(size_t index, Half half) {
  return half == Half::kAll || (index % 2 == 0) == (half == Half::kFit);
}

}  // namespace

absl::StatusOr<RecordedNoise> RecordedNoise::FromProcesses(
    const std::string& path, Half half) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  RecordedNoise noise;
  size_t index = 0;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty() || absl::StartsWith(line, "#")) continue;
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    Source source;
    source.name = std::string(fields[0]);
    std::vector<double> all;
    for (size_t i = 1; i < fields.size(); ++i) {
      std::vector<double> round;
      for (const absl::string_view word :
           absl::StrSplit(fields[i], ' ', absl::SkipEmpty())) {
        double value = 0;
        if (!absl::SimpleAtod(word, &value) || !(value > 0)) {
          return absl::InvalidArgumentError(
              absl::StrCat(path, ":", number, ": '", word,
                           "', expected a positive time in ns"));
        }
        round.push_back(value);
        all.push_back(value);
      }
      if (round.size() >= 2) source.rounds.push_back(std::move(round));
    }
    if (source.rounds.empty() || !Belongs(index++, half)) continue;
    const double median = Median(all);
    for (std::vector<double>& round : source.rounds) {
      for (double& value : round) value /= median;
    }
    noise.sources_.push_back(std::move(source));
  }
  if (noise.sources_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no benchmark with rounds of two processes"));
  }
  return noise;
}

absl::StatusOr<RecordedNoise> RecordedNoise::FromRecordings(
    const std::string& folder, Half half) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<std::string> names,
                           ListDirectory(folder));
  std::sort(names.begin(), names.end());
  RecordedNoise noise;
  size_t index = 0;
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".json.xz")) continue;
    if (!Belongs(index++, half)) continue;
    OPTRAIL_ASSIGN_OR_RETURN(const Recording recording,
                             ReadRecording(JoinPath(folder, name)));
    // Two configs that lie beside each other in the recording were measured one
    // after the other; repeat i of both is a round. Large spaces give a sample.
    const size_t stride = std::max<size_t>(2, recording.configs.size() / 40);
    for (size_t i = 0; i + 1 < recording.configs.size(); i += stride) {
      const RecordedConfig& a = recording.configs[i];
      const RecordedConfig& b = recording.configs[i + 1];
      const size_t repeats = std::min(a.repeats_ms.size(), b.repeats_ms.size());
      if (repeats < 5) continue;
      Source source;
      source.name = absl::StrCat(recording.name, " ", i);
      const double median_a = Median(a.repeats_ms);
      const double median_b = Median(b.repeats_ms);
      for (size_t r = 0; r < repeats; ++r) {
        source.rounds.push_back(
            {a.repeats_ms[r] / median_a, b.repeats_ms[r] / median_b});
      }
      noise.sources_.push_back(std::move(source));
    }
  }
  if (noise.sources_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": no recorded space with repeats"));
  }
  return noise;
}

}  // namespace optrail::tuning
