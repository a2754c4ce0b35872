#include <expat.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tracker/import/importers.h"
#include "tracker/import/suite_name.h"
#include "tracker/import/text_file.h"

namespace optrail::tracker {
namespace {

// The attributes of an element as expat gives them: names and values in turns.
std::string Attribute(const char** attributes, absl::string_view name) {
  for (; attributes[0] != nullptr; attributes += 2) {
    if (attributes[0] == name) return attributes[1];
  }
  return "";
}

class Parser {
 public:
  Parser(const ImportedFile& file, CollectedResults& results)
      : path_(file.path),
        content_(file.content),
        results_(results),
        parser_(XML_ParserCreate(nullptr), XML_ParserFree) {
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(),
        [](void* self, const char* name, const char** attributes) {
          static_cast<Parser*>(self)->Start(name, attributes);
        },
        [](void* self, const char* name) {
          static_cast<Parser*>(self)->End(name);
        });
  }

  absl::Status Parse(proto::Run& run) {
    constexpr size_t kMostBytes = 1u << 30;
    if (content_.size() > kMostBytes) {
      Fail("the file is larger than 1 GiB");
    } else if (XML_Parse(parser_.get(), content_.data(),
                         static_cast<int>(content_.size()),
                         /*isFinal=*/1) != XML_STATUS_OK) {
      Fail(absl::StrCat("no valid XML: ",
                        XML_ErrorString(XML_GetErrorCode(parser_.get()))));
    }
    run.set_suite(StableSuiteName(program_));
    return status_;
  }

 private:
  // The first error, which stops the parser.
  void Fail(absl::string_view what) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(
        path_, ":", XML_GetCurrentLineNumber(parser_.get()), ": ", what));
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  std::string Benchmark() const { return absl::StrJoin(names_, "/"); }

  void Start(absl::string_view element, const char** attributes) {
    const bool is_root = ++depth_ == 1;
    if (is_root) {
      if (element != "Catch" && element != "Catch2TestRun") {
        Fail(absl::StrCat("the root is <", element,
                          ">, expected <Catch> or <Catch2TestRun>"));
      }
      program_ = Attribute(attributes, "name");
    } else if (element == "TestCase" || element == "Section") {
      names_.push_back(Attribute(attributes, "name"));
    } else if (element == "BenchmarkResults") {
      names_.push_back(Attribute(attributes, "name"));
      if (names_.back().empty()) Fail("BenchmarkResults has no name");
      has_result_ = false;
      in_benchmark_ = true;
      samples_ = Attribute(attributes, "samples");
      iterations_ = Attribute(attributes, "iterations");
    } else if (in_benchmark_ && element == "mean") {
      AddMean(Attribute(attributes, "value"));
    } else if (in_benchmark_ && element == "failed") {
      Collected& one = results_.Of(Benchmark());
      one.outcome = proto::CRASHED;
      one.detail = Attribute(attributes, "message");
      has_result_ = true;
    }
  }

  void End(absl::string_view element) {
    --depth_;
    if (element == "BenchmarkResults" && !has_result_) {
      Fail(absl::StrCat("benchmark '", Benchmark(),
                        "' has no result, expected <mean> or <failed>"));
    }
    if (element == "BenchmarkResults") in_benchmark_ = false;
    if (element == "TestCase" || element == "Section" ||
        element == "BenchmarkResults") {
      names_.pop_back();
    }
  }

  // A test case runs once for each of its sections, and so do the benchmarks
  // before them: each time is a sample.
  void AddMean(const std::string& text) {
    double ns = 0;
    int64_t calls = 0;
    if (!absl::SimpleAtoi(iterations_, &calls) || calls < 1) {
      Fail(absl::StrCat("benchmark '", Benchmark(), "': iterations is '",
                        iterations_, "', expected a count of at least 1"));
      return;
    }
    if (!absl::SimpleAtod(text, &ns) || !std::isfinite(ns) || ns < 0 ||
        !FitsStoredTime(ns, static_cast<double>(calls))) {
      Fail(absl::StrCat("benchmark '", Benchmark(), "': mean is '", text,
                        "', expected nanoseconds of at least 0 and less than "
                        "280 years altogether"));
      return;
    }
    Collected& one = results_.Of(Benchmark());
    one.times_ns.push_back(ns);
    one.calls_per_sample = calls;
    one.labels.insert(absl::StrCat("mean of ", samples_, " samples"));
    has_result_ = true;
  }

  const std::string& path_;
  const std::string& content_;
  CollectedResults& results_;
  std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser_;
  absl::Status status_;
  std::string program_;
  int depth_ = 0;
  std::vector<std::string> names_;  // test case, sections, benchmark
  bool in_benchmark_ = false, has_result_ = false;
  std::string samples_, iterations_;  // as the benchmark says
};

bool Recognises(absl::string_view content) {
  return LooksLike(content.substr(0, 4096), '<', {"<Catch "}) ||
         LooksLike(content.substr(0, 4096), '<', {"<Catch2TestRun "});
}

absl::Status Read(const ImportedFile& file, CollectedResults& results,
                  proto::Run& run) {
  return Parser(file, results).Parse(run);
}

}  // namespace

extern constexpr Importer kCatch2 = {"catch2", Recognises, Read};

}  // namespace optrail::tracker
