#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/schedule/algorithm.h"
#include "tuning/schedule/program.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace.h"

namespace optrail::tuning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kMatmul[] =
    "input a 4 512 384\n"
    "input b 4 256 512\n"
    "stage c 4 256 384\n"
    "def 0 0\n"
    "def 1 2 512\n"
    "read input 0 0,0,1 0,1,0\n"
    "read input 1 1,0,0 0,0,1\n";

constexpr char kSoftmax[] =
    "input x 4 384 64\n"
    "stage max 4 64\n"
    "def 0 0\n"
    "def 1 1 384\n"
    "read input 0 0,1 1,0\n"
    "stage exp 4 384 64\n"
    "def 0 9\n"
    "read input 0 1,0 0,1\n"
    "read stage 0 0,1\n"
    "stage sum 4 64\n"
    "def 0 0\n"
    "def 1 1 384\n"
    "read stage 1 0,1 1,0\n"
    "stage y 4 384 64\n"
    "def 0 1\n"
    "read stage 1 1,0 0,1\n"
    "read stage 2 0,1\n";

Algorithm Parsed(absl::string_view text) {
  auto algorithm = ParseAlgorithm(text);
  EXPECT_TRUE(algorithm.ok()) << algorithm.status().message();
  return *std::move(algorithm);
}

TEST(AlgorithmTest, TextIsReadBackAsWritten) {
  EXPECT_EQ(Parsed(kMatmul).ToText(), kMatmul);
  EXPECT_EQ(Parsed(kSoftmax).ToText(), kSoftmax);
}

TEST(AlgorithmTest, RefusesWhatItIsNot) {
  for (const char* text :
       {"", "stage c 4 0\ndef 0 0\n", "stage c 4 8\n", "def 0 0\n",
        "stage c 4 8\ndef 0 0 3\n", "stage c 4 8\ndef 0 0\nread stage 0 1\n",
        "input a 4 8\nstage c 4 8\ndef 0 0\nread input 0 1,1\n",
        "input a 4 8\nstage c 4 8\ndef 0 0\nread input 1 1\n",
        "input a 4 8\nstage c 4 8\ndef 0 nan\n", "what\n"}) {
    const auto parsed = ParseAlgorithm(text);
    EXPECT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("line"));
  }
}

TEST(TraceTest, TextIsReadBackAsWritten) {
  const Trace trace = {{"s0_at", -1}, {"s10_tile0", 32}, {"s1_at", 0}};
  const auto parsed = ParseTrace(TraceText(trace));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, trace);
  EXPECT_TRUE(ParseTrace("")->empty());
}

TEST(TraceTest, RefusesAnyTextThatItDoesNotPrint) {
  for (const char* text :
       {"a", "a=", "=1", "a=1,", ",a=1", "a=1,a=2", "b=1,a=2", "a=01", "a=+1",
        "a= 1", "a=1.5", "a=99999999999999999999", "0a=1", "a-b=1", "a=1\n"}) {
    EXPECT_FALSE(ParseTrace(text).ok()) << text;
  }
}

// Bytes flipped, cut and doubled: read back exactly or refused.
TEST(TraceTest, SurvivesMutilatedText) {
  Rng rng(3);
  const std::string seed = "s0_at=2,s0_tile0=32,s1_order2=17,s2_lanes=-5";
  for (int i = 0; i < 20000; ++i) {
    std::string text = seed;
    const int64_t edits = 1 + rng.UniformInt(4);
    for (int64_t e = 0; e < edits && !text.empty(); ++e) {
      const auto at = static_cast<size_t>(
          rng.UniformInt(static_cast<int64_t>(text.size())));
      switch (rng.UniformInt(4)) {
        case 0:
          text[at] = static_cast<char>(rng.UniformInt(256));
          break;
        case 1:
          text.erase(at, 1 + rng.UniformInt(8));
          break;
        case 2:
          text.insert(at, text.substr(at, 6));
          break;
        default:
          text[at] = "=,_0159s-"[rng.UniformInt(9)];
      }
    }
    const auto parsed = ParseTrace(text);
    if (parsed.ok()) {
      EXPECT_EQ(TraceText(*parsed), text);
    }
  }
}

class DeriveTest : public testing::TestWithParam<const char*> {};

TEST_P(DeriveTest, DefaultPassesItsOwnCheck) {
  const Algorithm algorithm = Parsed(GetParam());
  Decisions decisions = Decisions::Default();
  const auto program = Derive(algorithm, Machine(), decisions);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_FALSE(program->LoopsText().empty());
}

TEST_P(DeriveTest, ReplayOfATraceIsTheSameProgram) {
  const Algorithm algorithm = Parsed(GetParam());
  Rng rng(7);
  std::set<std::string> programs;
  int fit = 0;
  for (int i = 0; i < 500; ++i) {
    Decisions drawn = Decisions::Draw(rng);
    const auto program = Derive(algorithm, Machine(), drawn);
    if (!program.ok()) continue;
    ++fit;
    const auto trace = ParseTrace(TraceText(drawn.trace()));
    ASSERT_TRUE(trace.ok());
    Decisions replayed = Decisions::Replay(*trace);
    Machine other;  // means the same on any machine
    other.threads = 64;
    other.vector_bytes = 16;
    const auto again = Derive(algorithm, other, replayed);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->StepsText(), program->StepsText());
    programs.insert(program->StepsText());
  }
  EXPECT_GT(fit, 400);
  EXPECT_GT(programs.size(), 300);
}

TEST_P(DeriveTest, VariedAndCrossedTracesStayPrograms) {
  const Algorithm algorithm = Parsed(GetParam());
  Rng rng(11);
  std::vector<Trace> traces;
  for (int i = 0; i < 300; ++i) {
    Trace from;
    if (traces.size() >= 2) {
      const Trace& a = traces[rng.UniformInt(traces.size())];
      const Trace& b = traces[rng.UniformInt(traces.size())];
      from = i % 2 == 0 ? Mutated(a, rng) : Crossed(a, b, rng);
    }
    Decisions varied = Decisions::Vary(from, rng);
    const auto program = Derive(algorithm, Machine(), varied);
    if (!program.ok()) continue;
    traces.push_back(varied.trace());
    Decisions replayed = Decisions::Replay(varied.trace());
    EXPECT_TRUE(Derive(algorithm, Machine(), replayed).ok());
  }
  EXPECT_GT(traces.size(), 200);
}

// Any trace is replayed or refused, and no refused one takes long.
TEST_P(DeriveTest, SurvivesTracesOfAnything) {
  const Algorithm algorithm = Parsed(GetParam());
  Rng rng(13);
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    Decisions drawn = Decisions::Draw(rng);
    (void)Derive(algorithm, Machine(), drawn);
    Trace trace = drawn.trace();
    for (auto& [name, value] : trace) {
      if (rng.UniformInt(8) == 0) {
        value = static_cast<int64_t>(rng()) >> rng.UniformInt(64);
      }
    }
    if (rng.UniformInt(4) == 0) trace["s99_other"] = 1;
    if (rng.UniformInt(4) == 0) trace.erase(trace.begin());
    Decisions replayed = Decisions::Replay(trace);
    const auto program = Derive(algorithm, Machine(), replayed);
    accepted += program.ok();
    if (!program.ok()) {
      EXPECT_FALSE(program.status().message().empty());
    }
  }
  EXPECT_LT(accepted, 2000);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, DeriveTest,
                         testing::Values(kMatmul, kSoftmax));

TEST(DeriveTest, NamesTheDecisionThatDoesNotFit) {
  const Algorithm algorithm = Parsed(kMatmul);
  Decisions usual = Decisions::Default();
  ASSERT_TRUE(Derive(algorithm, Machine(), usual).ok());
  Trace trace = usual.trace();
  trace["s0_at"] = 77;
  Decisions wrong = Decisions::Replay(trace);
  const auto program = Derive(algorithm, Machine(), wrong);
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(std::string(program.status().message()),
              HasSubstr("decision s0_at is 77; expected one of 0, 1"));
}

// What is stored today must mean the same tomorrow. If this fails, the
// versions of the rules that changed must rise.
TEST(DeriveTest, StoredTraceMeansTheSameLoops) {
  const Algorithm algorithm = Parsed(kMatmul);
  Decisions usual = Decisions::Default();
  const auto program = Derive(algorithm, Machine(), usual);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(TraceText(usual.trace()),
            "s0_at=2,s0_cache_write=1,s0_lanes=16,s0_pack0=0,s0_pack1=1,"
            "s0_rblock0=0,s0_rfactor=0,s0_rtile0=1,s0_tile0=64,s0_tile1=7,"
            "s0_unroll=1,s1_block0=1,s1_block1=0,s1_lanes=16,s1_parallel=1,"
            "s1_tile0=64,s1_tile1=7,s1_unroll=1,s2_at=1,s2_lanes=16,"
            "s2_order2=0,s2_tile0=32,s2_tile1=1,s2_unroll=1");
  EXPECT_EQ(program->StepsText(),
            "cache_write 0\n"
            "root 1\n"
            "split 1 0 x0 64\n"
            "split 1 0 x1 7 shift\n"
            "reorder 1 0 x0o x1o x1i x0i\n"
            "split 1 0 x0i 16\n"
            "vectorize 1 0 x0ii\n"
            "unroll 1 0 x1i\n"
            "unroll 1 0 x0io\n"
            "parallel 1 0 x0o\n"
            "at 0 1 0 x1o\n"
            "extent 0 0 64\n"
            "extent 0 1 7\n"
            "reorder 0 1 r0 x1 x0\n"
            "split 0 0 x0 16\n"
            "vectorize 0 0 x0i\n"
            "split 0 1 x0 16\n"
            "vectorize 0 1 x0i\n"
            "unroll 0 0 x1\n"
            "unroll 0 0 x0o\n"
            "unroll 0 1 x1\n"
            "unroll 0 1 x0o\n"
            "cache_read 0 input 1\n"
            "at 2 1 0 x0o\n"
            "extent 2 0 64\n"
            "extent 2 1 512\n"
            "split 2 0 x0 32\n"
            "reorder 2 0 x1 x0o x0i\n"
            "split 2 0 x0i 16\n"
            "vectorize 2 0 x0ii\n"
            "unroll 2 0 x0io\n");
}

TEST(DeriveTest, PartialResultsAreMergedAsLanes) {
  const Algorithm softmax = Parsed(kSoftmax);
  Decisions usual = Decisions::Default();
  const auto program = Derive(softmax, Machine(), usual);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(usual.trace().at("s0_rfactor"), 64);
  EXPECT_EQ(usual.trace().at("s0_merge"), 1);
  EXPECT_THAT(program->StepsText(), HasSubstr("\nvectorize 0 1 r0\n"));
  Decisions serial = Decisions::Prefer({{"s0_merge", 0}});
  const auto one_by_one = Derive(softmax, Machine(), serial);
  ASSERT_TRUE(one_by_one.ok());
  EXPECT_THAT(one_by_one->StepsText(),
              testing::Not(HasSubstr("\nvectorize 0 1 r0\n")));
}

TEST(ProgramTest, FootprintFollowsTheAccesses) {
  // A 3-wide sum, computed in tiles of 8.
  Program program(
      Parsed("input x 4 100\nstage p 4 100\ndef 0 1\nread input 0 1\n"
             "stage q 4 98\ndef 0 2\nread stage 0 1\nread stage 0 1\n"
             "read stage 0 2\n"));
  program.ComputeRoot(1);
  const LoopNames names = program.Split(1, 0, "x0", 8);
  EXPECT_THAT(program.CommonLoops(0), testing::SizeIs(2));
  EXPECT_THAT(program.FootprintAt(0, {1, 0, 0}), ElementsAre(15));
  // Neighbours on both sides: 8 and a halo of 2.
  Program stencil(
      Parsed("input x 4 100\nstage p 4 100\ndef 0 1\nread input 0 1\n"
             "stage q 4 98\ndef 0 2\nread stage 0 1\nread stage 0 1\n"
             "read stage 0 1\n"));
  stencil.ComputeRoot(1);
  stencil.Split(1, 0, "x0", 8);
  EXPECT_THAT(stencil.FootprintAt(0, {1, 0, 0}), ElementsAre(10));
  program.Mark(1, 0, names.inner, LoopKind::kVector);
  EXPECT_THAT(program.CommonLoops(0), testing::SizeIs(1));
}

TEST(ProgramTest, RefusesTooManyLanesAndTooMuchUnrolling) {
  Program wide(Parsed("stage p 4 1000\ndef 0 1\n"));
  wide.ComputeRoot(0);
  wide.Split(0, 0, "x0", 128);
  wide.Mark(0, 0, "x0i", LoopKind::kVector);
  EXPECT_THAT(std::string(wide.Check().message()),
              HasSubstr("lanes 128, at most 64"));
  Program unrolled(Parsed("stage p 4 100000\ndef 0 1\n"));
  unrolled.ComputeRoot(0);
  unrolled.Split(0, 0, "x0", 2000);
  unrolled.Mark(0, 0, "x0i", LoopKind::kUnrolled);
  EXPECT_THAT(std::string(unrolled.Check().message()),
              HasSubstr("unrolled operations 2000, at most 1000"));
}

// Three stages of 32 columns and 512 rows: q by blocks of 64 rows, of which
// tiles of `rows` do not leave it, and p for all tiles of a block together.
Program OverlappingTiles(int64_t rows, int64_t rows_of_input) {
  Program program(Parsed(
      absl::StrCat("input x 4 32 ", rows_of_input,
                   "\nstage p 4 32 512\ndef 0 1\nread input 0 1,0 0,1\n"
                   "stage q 4 32 512\ndef 0 1\nread stage 0 1,0 0,1\n"
                   "stage r 4 32 512\ndef 0 1\nread stage 1 1,0 0,1\n")));
  program.ComputeRoot(2);
  program.Split(2, 0, "x1", 64);
  program.Reorder(2, 0, {"x1o", "x1i", "x0"});
  program.ComputeAt(1, {2, 0, 0});
  program.Split(1, 0, "x1", rows);
  program.Reorder(1, 0, {"x0", "x1o", "x1i"});
  program.ComputeAt(0, {1, 0, 0});
  return program;
}

TEST(ProgramTest, RefusesToReadMoreThanThereIs) {
  EXPECT_TRUE(OverlappingTiles(4, 512).Check().ok());
  // 22 tiles of 3 rows are 66, two of them for nobody.
  EXPECT_THAT(OverlappingTiles(3, 512).plan(0).region, ElementsAre(1, 66));
  EXPECT_THAT(std::string(OverlappingTiles(3, 512).Check().message()),
              HasSubstr("stage 0 (p): x's axis 1 of 512 would be read as 514"));
  EXPECT_TRUE(OverlappingTiles(3, 514).Check().ok());
}

// The smallest of a program of 38 decisions that was called wrong: its code
// ended by an assertion about the copy of the left operand, and left no result.
TEST(DeriveTest, RefusesACopyOfWhichMoreIsReadThanIsMade) {
  const Algorithm linear = Parsed(
      "input a 4 64 512\n"
      "input b 4 96 64\n"
      "stage product 4 96 512\n"
      "def 0 0\n"
      "def 1 2 64\n"
      "read input 0 0,0,1 0,1,0\n"
      "read input 1 1,0,0 0,0,1\n"
      "stage biased 4 96 512\n"
      "def 0 1\n"
      "read stage 0 1,0 0,1\n"
      "stage linear 4 96 512\n"
      "def 0 1\n"
      "read stage 1 1,0 0,1\n");
  const auto derive = [&](Trace changed) {
    // Rows by blocks of 64, all columns; what has a bias by tiles within, and
    // products for a column of those; the left operand once for a block.
    Trace trace = {{"s2_tile0", 96}, {"s2_tile1", 2},  {"s2_block1", 32},
                   {"s1_inline", 0}, {"s1_at", 1},     {"s1_tile0", 48},
                   {"s1_tile1", 3},  {"s1_order1", 1}, {"s0_at", 2},
                   {"s0_pack0", 1},  {"s0_pack1", 0},  {"s3_at", 1}};
    for (const auto& [name, value] : changed) trace[name] = value;
    Decisions decisions = Decisions::Prefer(trace);
    const auto program = Derive(linear, Machine(), decisions);
    for (const auto& [name, value] : trace) {
      if (name == "s3_at" && trace["s0_pack0"] == 0) continue;
      EXPECT_EQ(decisions.trace().at(name), value) << name;
    }
    return program.status();
  };
  EXPECT_THAT(
      std::string(derive({}).message()),
      HasSubstr("stage 3 (a.in): its axis 1 of 64 would be read as 66"));
  EXPECT_THAT(std::string(derive({{"s0_pack0", 0}}).message()),
              HasSubstr("stage 0 (product): a's axis 1 of 512 would be read as "
                        "514"));
  // Tiles that fit; and products for each tile.
  EXPECT_TRUE(derive({{"s1_tile1", 4}}).ok());
  EXPECT_TRUE(derive({{"s0_at", 3}}).ok());
}

TEST(ProgramTest, RemembersAPrimitiveThatCannotBe) {
  Program program(Parsed("stage p 4 10\ndef 0 1\n"));
  program.ComputeRoot(0);
  program.Split(0, 0, "x0", 11);
  program.Mark(0, 0, "nothing", LoopKind::kVector);
  EXPECT_THAT(std::string(program.Check().message()),
              HasSubstr("loop x0 cannot be split by 11"));
}

TEST(ProgramTest, InliningPassesReadsOn) {
  Program program(
      Parsed("input x 4 64\nstage p 4 64\ndef 0 3\nread input 0 2\n"
             "stage q 4 32\ndef 0 2\nread stage 0 5\n"));
  program.ComputeInline(0);
  const Definition& definition = program.stage(1).definitions[0];
  EXPECT_EQ(definition.flop, 5);
  ASSERT_EQ(definition.reads.size(), 1);
  EXPECT_TRUE(definition.reads[0].of_input);
  EXPECT_THAT(definition.reads[0].dims[0].coefficients, ElementsAre(10));
}

class ReverseEverything : public SketchRule {
 public:
  std::string name() const override { return "reverse"; }
  void Apply(const Machine&, int, Decisions&, Program&) const override {}
};

TEST(RuleTest, RulesRegisterOnceAndAreListedInOrder) {
  EXPECT_TRUE(absl::StartsWith(SketchRulesText(), "inline "));
  EXPECT_TRUE(RegisterSketchRule(99, std::make_unique<ReverseEverything>()));
  EXPECT_FALSE(RegisterSketchRule(99, std::make_unique<ReverseEverything>()));
  EXPECT_THAT(SketchRulesText(), HasSubstr(", reverse 1"));
}

}  // namespace
}  // namespace optrail::tuning
