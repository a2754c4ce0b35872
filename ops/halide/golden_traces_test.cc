// A trace that was stored with an earlier build comes out as the same loops,
// and as an object of the same bytes: golden_traces.txt holds some, with the
// versions that they were made by. What differs must differ in what backends'
// ids are made of: Halide, LLVM, the rules' versions, the algorithm's source
// and ours; then this says so and skips. After a change to one of those:
//
//   bazel run //ops/halide:golden_traces_test -- --record > golden_traces.txt

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "ops/core/backend.h"
#include "ops/core/registry.h"
#include "ops/halide/compiler_process.h"
#include "ops/halide/problem.h"
#include "tuning/proto/canonical.h"
#include "tuning/schedule/rule.h"

ABSL_FLAG(bool, record, false, "print what golden_traces.txt should hold");

namespace optrail::ops {
namespace {

constexpr char kFile[] = "ops/halide/golden_traces.txt";

// The same everywhere: code is generated for it, not run.
constexpr char kTarget[] = "x86-64-linux-sse41-avx-avx2-fma-f16c";

std::string CompilerOf(absl::string_view op) {
  return absl::StrCat("optrail/ops/", op, "/", op, "_halide_compiler");
}

// "Halide 14.0.0-3, LLVM 1:14.0.6-12"
std::string CompilersText() {
  const OperatorEntry* const entry = Registry::Get().Find("matmul");
  return (*entry->FindBackend(proto::CPU, "halide"))->library();
}

struct Problem {
  std::string op, text;
  // The sources of the operator's algorithm and of our part of the compiler.
  std::string sources;
  tuning::Algorithm algorithm;
};

absl::StatusOr<Problem> MakeProblem(const std::string& op,
                                    const std::string& shape_text) {
  const OperatorEntry* const entry = Registry::Get().Find(op);
  if (entry == nullptr) return Registry::Get().UnknownOperator(op);
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Shape shape,
                           tuning::ParseShape(shape_text));
  Problem problem;
  problem.op = op;
  OPTRAIL_ASSIGN_OR_RETURN(problem.text,
                           ProblemText(*entry->op, shape, kTarget));
  OPTRAIL_ASSIGN_OR_RETURN(const Backend* const backend,
                           entry->FindBackend(proto::CPU, "halide"));
  Target target;
  target.kind = proto::CPU;
  OPTRAIL_ASSIGN_OR_RETURN(
      const Recipe recipe,
      backend->Describe(
          {shape, *tuning::ParseConfig("algorithm=default"), target}));
  problem.sources = recipe.options.at(0);
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string algorithm,
      halide::AskCompiler(CompilerOf(op),
                          RequestText("describe", problem.text)));
  OPTRAIL_ASSIGN_OR_RETURN(problem.algorithm,
                           tuning::ParseAlgorithm(algorithm));
  return problem;
}

absl::StatusOr<std::string> StepsOf(const Problem& problem,
                                    tuning::Decisions& decisions) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const tuning::Program program,
      tuning::Derive(problem.algorithm, tuning::Machine(), decisions));
  return program.StepsText();
}

absl::StatusOr<std::string> ObjectOf(const Problem& problem,
                                     const std::string& steps) {
  return halide::AskCompiler(CompilerOf(problem.op),
                             RequestText("object", problem.text, steps));
}

struct Golden {
  std::string op, shape, sources, steps, object, trace;
};

struct GoldenFile {
  std::string compilers, rules;
  std::vector<Golden> programs;
};

absl::StatusOr<GoldenFile> ReadGoldenFile() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(kFile));
  GoldenFile file;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "compilers ")) {
      file.compilers = std::string(line);
    } else if (absl::ConsumePrefix(&line, "rules ")) {
      file.rules = std::string(line);
    } else if (absl::ConsumePrefix(&line, "program ")) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      if (words.size() != 6) return absl::DataLossError(line);
      file.programs.push_back(
          {words[0], words[1], words[2], words[3], words[4], words[5]});
    } else if (!line.empty() && line[0] != '#') {
      return absl::DataLossError(line);
    }
  }
  return file;
}

// Empty where a program must come out as it was recorded.
std::string WhyLoopsMayDiffer(const GoldenFile& file, const Golden& golden,
                              const Problem& problem) {
  const std::string now = tuning::SketchRulesText();
  if (file.rules != now) {
    return absl::StrCat("recorded with rules ", file.rules, ", these are ", now,
                        ": record anew");
  }
  if (golden.sources != problem.sources) {
    return absl::StrCat("the algorithm of ", golden.op,
                        " or ops/halide/compile.cc is another than was "
                        "recorded: record anew");
  }
  return "";
}

std::string WhyBytesMayDiffer(const GoldenFile& file, const Golden& golden,
                              const Problem& problem) {
  if (file.compilers != CompilersText()) {
    return absl::StrCat("recorded with ", file.compilers, ", here is ",
                        CompilersText());
  }
  return WhyLoopsMayDiffer(file, golden, problem);
}

// A stored trace as steps: nullopt where it no longer fits, or means other
// loops.
absl::optional<std::string> Replayed(const Problem& problem,
                                     const Golden& golden) {
  tuning::Decisions decisions =
      tuning::Decisions::Replay(*tuning::ParseTrace(golden.trace));
  const auto steps = StepsOf(problem, decisions);
  if (!steps.ok() || Fingerprint(*steps) != golden.steps) return absl::nullopt;
  return *steps;
}

TEST(GoldenTracesTest, AreReplayedToTheSameLoops) {
  const auto file = ReadGoldenFile();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_FALSE(file->programs.empty());
  for (const Golden& golden : file->programs) {
    SCOPED_TRACE(absl::StrCat(golden.op, " ", golden.shape));
    const auto problem = MakeProblem(golden.op, golden.shape);
    if (absl::IsUnavailable(problem.status())) {
      GTEST_SKIP() << problem.status().message();
    }
    ASSERT_TRUE(problem.ok()) << problem.status();
    if (Replayed(*problem, golden).has_value()) continue;
    const std::string why = WhyLoopsMayDiffer(*file, golden, *problem);
    if (!why.empty()) GTEST_SKIP() << why;
    ADD_FAILURE() << golden.trace
                  << " makes other loops, and no rule has another version: "
                     "raise that of the one which came to mean something "
                     "else, then record anew";
  }
}

TEST(GoldenTracesTest, AreReplayedToObjectsOfTheSameBytes) {
  const auto file = ReadGoldenFile();
  ASSERT_TRUE(file.ok()) << file.status();
  for (const Golden& golden : file->programs) {
    SCOPED_TRACE(absl::StrCat(golden.op, " ", golden.shape));
    const auto problem = MakeProblem(golden.op, golden.shape);
    if (absl::IsUnavailable(problem.status())) {
      GTEST_SKIP() << problem.status().message();
    }
    ASSERT_TRUE(problem.ok()) << problem.status();
    const absl::optional<std::string> steps = Replayed(*problem, golden);
    if (!steps.has_value()) continue;  // the other test's affair
    const auto object = ObjectOf(*problem, *steps);
    ASSERT_TRUE(object.ok()) << object.status();
    if (Fingerprint(*object) == golden.object) continue;
    const std::string why = WhyBytesMayDiffer(*file, golden, *problem);
    if (!why.empty()) GTEST_SKIP() << why;
    ADD_FAILURE() << "the same compilers and sources made other code of "
                  << golden.trace;
  }
}

// The rules' own program and two drawn ones of operators whose algorithms
// differ.
absl::Status Record() {
  const std::vector<std::pair<std::string, std::string>> problems = {
      {"conv_bn_relu", "n=1,h=14,w=14,c=32,k=32,r=3,s=3/padding=1/f32"},
      {"layer_norm", "rows=16,cols=256/f32"},
      {"matmul", "m=64,n=96,k=128/f32"},
      {"softmax", "rows=9,cols=83/f32"},
      {"transpose", "rows=64,cols=48/f32"},
  };
  std::cout << "# Traces, and what comes of them: golden_traces_test.cc.\n"
            << "# program OPERATOR SHAPE SOURCES STEPS OBJECT TRACE\n"
            << "compilers " << CompilersText() << "\n"
            << "rules " << tuning::SketchRulesText() << "\n";
  for (const auto& [op, shape] : problems) {
    OPTRAIL_ASSIGN_OR_RETURN(const Problem problem, MakeProblem(op, shape));
    Rng rng(20261122);
    for (int recorded = 0; recorded < 3;) {
      tuning::Decisions decisions = recorded == 0
                                        ? tuning::Decisions::Default()
                                        : tuning::Decisions::Draw(rng);
      const auto steps = StepsOf(problem, decisions);
      if (!steps.ok()) continue;
      const auto object = ObjectOf(problem, *steps);
      if (!object.ok()) continue;  // refused by Halide
      std::cout << "program " << op << " " << shape << " " << problem.sources
                << " " << Fingerprint(*steps) << " " << Fingerprint(*object)
                << " " << tuning::TraceText(decisions.trace()) << "\n";
      ++recorded;
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::ops

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  if (!absl::GetFlag(FLAGS_record)) return RUN_ALL_TESTS();
  const absl::Status status = optrail::ops::Record();
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
