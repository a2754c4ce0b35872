#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "tracker/import/importers.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

proto::Direction DirectionOf(absl::string_view unit) {
  for (const absl::string_view cost : {"B/op", "allocs/op", "ns/op"}) {
    if (unit == cost) return proto::LOWER_IS_BETTER;
  }
  return DirectionOfName(unit);
}

// "BenchmarkSort/n=64-2", but not "Benchmarking ...".
bool IsBenchmarkName(absl::string_view word) {
  if (!absl::ConsumePrefix(&word, "Benchmark")) return false;
  return word.empty() || !absl::ascii_islower(word[0]);
}

class Parser {
 public:
  Parser(const ImportedFile& file, CollectedResults& results)
      : lines_(file), collected_(results) {}

  absl::Status Parse(proto::Run& run) {
    OPTRAIL_RETURN_IF_ERROR(lines_.ForEach(
        [this](absl::string_view line) { return ParseLine(line); }));
    // Go prints it of a loop without work, beside benchmarks that have some.
    collected_.SkipTimesOfZero("0 ns/op: a call takes less than Go prints");
    run.set_suite(first_package_);
    SetMachine(cpu_, absl::nullopt, run);
    run.mutable_toolchain()->set_os(
        goos_.empty() ? "" : absl::StrCat(goos_, "/", goarch_));
    return absl::OkStatus();
  }

 private:
  absl::Status Wrong(absl::string_view field, absl::string_view found,
                     absl::string_view expected) const {
    const std::string benchmark =
        benchmark_.empty() ? ""
                           : absl::StrCat("benchmark '", benchmark_, "': ");
    return lines_.Wrong(absl::StrCat(benchmark, field), found, expected);
  }

  Collected& Of(absl::string_view name) {
    return collected_.Of(package_.empty() ? std::string(name)
                                          : absl::StrCat(package_, ".", name));
  }

  absl::Status ParseLine(absl::string_view line) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, "goos: ")) goos_ = std::string(rest);
    if (absl::ConsumePrefix(&rest, "goarch: ")) goarch_ = std::string(rest);
    if (absl::ConsumePrefix(&rest, "cpu: ")) cpu_ = std::string(rest);
    if (absl::ConsumePrefix(&rest, "pkg: ")) {
      package_ = std::string(absl::StripAsciiWhitespace(rest));
      if (first_package_.empty()) first_package_ = package_;
      benchmark_.clear();
      suffix_.clear();
      package_failed_ = false;
      return absl::OkStatus();
    }
    if (absl::ConsumePrefix(&rest, "--- FAIL: ")) {
      return Fail(rest, proto::CRASHED, "it failed");
    }
    if (absl::ConsumePrefix(&rest, "--- SKIP: ")) {
      return Fail(rest, proto::UNSUPPORTED, "it was skipped");
    }
    if (absl::StartsWith(line, "panic: ")) {
      return Fail(benchmark_, proto::CRASHED, line);
    }
    if (absl::StartsWith(line, "FAIL")) return EndPackage(line);
    if (absl::StartsWith(line, "    ")) {
      last_log_ = std::string(absl::StripAsciiWhitespace(line));
    }
    return ParseResult(line);
  }

  // "NAME [ITERATIONS VALUE UNIT ...]", or what output of the benchmark tore
  // off it: without the name.
  absl::Status ParseResult(absl::string_view line) {
    std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.empty()) return absl::OkStatus();
    if (IsBenchmarkName(words[0])) {
      benchmark_ = std::string(words[0]);
      words.erase(words.begin());
    } else if (benchmark_.empty()) {
      return absl::OkStatus();
    }
    static const RE2* const kCount = new RE2("[0-9]+");
    if (words.size() < 3 || words.size() % 2 == 0 ||
        !RE2::FullMatch({words[0].data(), words[0].size()}, *kCount)) {
      return absl::OkStatus();  // a log line
    }
    int64_t calls = 0;
    if (!absl::SimpleAtoi(words[0], &calls) || calls < 1) {
      return Wrong("the number of iterations", words[0], "1 to 2^63-1");
    }
    Collected& one = Of(benchmark_);
    for (size_t i = 1; i + 1 < words.size(); i += 2) {
      double value = 0;
      if (!absl::SimpleAtod(words[i], &value) || !std::isfinite(value)) {
        return Wrong(words[i + 1], words[i], "a finite number");
      }
      OPTRAIL_RETURN_IF_ERROR(AddValue(words[i + 1], value, calls, one));
    }
    suffix_ = ProcsSuffix(benchmark_);
    benchmark_.clear();
    return absl::OkStatus();
  }

  absl::Status AddValue(absl::string_view unit, double value, int64_t calls,
                        Collected& one) {
    if (unit != "ns/op") {
      one.AddMetric(std::string(unit), std::string(unit), DirectionOf(unit),
                    value);
      return absl::OkStatus();
    }
    if (value < 0 || !FitsStoredTime(value, static_cast<double>(calls))) {
      return Wrong("ns/op", absl::StrCat(value),
                   "at least 0 and less than 280 years altogether");
    }
    if (one.times_ns.empty()) one.calls_per_sample = calls;
    one.times_ns.push_back(value);
    return absl::OkStatus();
  }

  static std::string ProcsSuffix(const std::string& name) {
    static const RE2* const kSuffix = new RE2("(-[0-9]+)$");
    std::string suffix;
    RE2::PartialMatch(name, *kSuffix, &suffix);
    return suffix;
  }

  absl::Status Fail(absl::string_view name, proto::Outcome outcome,
                    absl::string_view what) {
    package_failed_ |= outcome == proto::CRASHED;
    std::string full(absl::StripAsciiWhitespace(name));
    // Before its first result Go leaves the processors out of the name.
    if (!full.empty() && ProcsSuffix(full).empty()) full += suffix_;
    Collected& one = full.empty() ? collected_.Of(package_) : Of(full);
    one.outcome = outcome;
    one.detail = absl::StrCat(what, last_log_.empty() ? "" : ": ", last_log_);
    last_log_.clear();
    benchmark_.clear();
    return absl::OkStatus();
  }

  // "FAIL", "FAIL\tPACKAGE\t1.2s", "FAIL\tPACKAGE [build failed]".
  absl::Status EndPackage(absl::string_view line) {
    if (absl::EndsWith(line, " failed]")) {
      benchmark_.clear();
      return Wrong("a package's result", line, "that every package builds");
    }
    const std::vector<absl::string_view> words = absl::StrSplit(line, '\t');
    if (words.size() < 2 || package_failed_) return absl::OkStatus();
    // os.Exit, a signal, a deadline: what was running is not named.
    package_ = std::string(words[1]);
    return Fail("", proto::CRASHED, "the package's process failed");
  }

  TextLines lines_;
  CollectedResults& collected_;
  std::string goos_, goarch_, cpu_;
  std::string package_, first_package_;
  std::string benchmark_;  // begun, without a result so far
  std::string suffix_;     // "-2", of the last benchmark
  std::string last_log_;
  bool package_failed_ = false;
};

bool Recognises(absl::string_view content) {
  static const RE2* const kLine = new RE2(
      "(?m)^(?:(?:goos|goarch|pkg): |Benchmark\\S*[ \\t]+[0-9]+[ \\t]+"
      "[0-9.eE+-]+ \\S)");
  const absl::string_view head = content.substr(0, 65536);
  return !absl::StartsWith(head, "{") &&
         RE2::PartialMatch({head.data(), head.size()}, *kLine);
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run& run) {
  return Parser(file, results).Parse(run);
}

}  // namespace

extern constexpr Importer kGoBench = {"go_bench", Recognises, Read};

}  // namespace optrail::tracker
