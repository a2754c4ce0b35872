// Programs drawn at random, over every operator that has an algorithm: each is
// compiled, runs and matches the reference, or is refused with a reason; none
// ends the process. Half are drawn as a search draws them, half of all options
// alike. They run in a process of their own, on operands between pages that
// nobody may touch, since a program that reads a little beyond its inputs would
// match all the same. A campaign:
//
//   random_traces_test --gtest_filter=*Compile*/conv2d --traces=500

#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "ops/core/backend.h"
#include "ops/core/compare.h"
#include "ops/core/data_type.h"
#include "ops/core/device_type.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "tuning/proto/canonical.h"
#include "tuning/schedule/rule.h"
#include "tuning/schedule/trace_source.h"

ABSL_FLAG(int, traces, 3, "how many programs of each shape");
ABSL_FLAG(std::string, op, "", "only this operator");
ABSL_FLAG(int, seed, 1, "of what is drawn");
ABSL_FLAG(std::string, shape, "", "only this shape of --op");
ABSL_FLAG(std::string, trace, "", "of --op and --shape: this program alone");

namespace optrail::ops {
namespace {

// Odd sizes, so that no tile divides them, and even ones.
const std::map<std::string, std::vector<std::string>>& Shapes() {
  static const auto& shapes = *new std::map<std::string,
                                            std::vector<std::string>>{
      {"add", {"n=1000/f32", "n=37/f32"}},
      {"attention",
       {"batch=1,heads=2,queries=19,keys=37,d=24/f32",
        "batch=2,heads=4,queries=16,keys=16,d=32/causal=yes,group=2/f32"}},
      {"batched_matmul",
       {"batch=3,m=17,n=35,k=40/f32", "batch=2,m=32,n=32,k=48/transposed=a/f32",
        "batch=2,m=32,n=32,k=48/transposed=b/f32"}},
      {"conv2d",
       {"n=1,h=9,w=11,c=16,k=40,r=3,s=3/padding=1/f32",
        "n=2,h=8,w=8,c=32,k=32,r=1,s=1/f32"}},
      {"conv_bn_relu",
       {"n=1,h=13,w=13,c=5,k=24,r=5,s=5/padding=2,stride=2/f32",
        "n=1,h=7,w=7,c=64,k=64,r=3,s=3/padding=1/f32"}},
      {"depthwise_conv2d",
       {"n=1,h=9,w=11,c=24,r=3,s=3/padding=1/f32",
        "n=2,h=12,w=12,c=32,r=5,s=5/padding=2,stride=2/f32"}},
      {"embedding_bag", {"rows=50,cols=40,bags=7,lookups=5/f32"}},
      {"gelu", {"n=1000/f32", "n=1000/approximation=tanh/f32"}},
      {"layer_norm",
       {"rows=5,cols=67/f32", "rows=12,cols=128/f32",
        "rows=12,cols=64/statistics=written/f32"}},
      {"layer_norm_backward", {"rows=9,cols=67/f32", "rows=32,cols=64/f32"}},
      {"linear", {"m=9,n=50,k=33/activation=gelu/f32", "m=32,n=64,k=64/f32"}},
      {"matmul",
       {"m=37,n=67,k=45/f32", "m=64,n=96,k=128/f32", "m=1,n=70,k=64/f32"}},
      {"relu", {"n=1000/f32"}},
      {"rms_norm",
       {"rows=5,cols=67/f32", "rows=12,cols=128/statistics=written/f32"}},
      {"rms_norm_backward", {"rows=9,cols=67/f32"}},
      {"softmax",
       {"rows=9,cols=83/f32", "rows=16,cols=128/f32", "rows=5,cols=203/f32"}},
      {"stencil", {"h=23,w=45/f32", "h=32,w=40/steps=3/f32"}},
      {"sum",
       {"rows=9,cols=83/f32", "rows=64,cols=96/axis=rows/f32",
        "rows=20,cols=48/axis=all/f32"}},
      {"transpose", {"rows=37,cols=70/f32", "rows=64,cols=48/f32"}},
  };
  return shapes;
}

// Memory between pages that nobody may touch, flush with the one before it or
// with the one behind it; what is left of its last page is full of NaN.
class FencedMemory {
 public:
  enum class Flush { kBegin, kEnd };

  FencedMemory(size_t bytes, Flush flush) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    usable_ = std::max<size_t>((bytes + page - 1) / page, 1) * page;
    void* const reserved = mmap(nullptr, usable_ + 2 * page, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED) abort();
    begin_ = static_cast<char*>(reserved) + page;
    if (mprotect(begin_, usable_, PROT_READ | PROT_WRITE) != 0) abort();
    std::memset(begin_, kNan, usable_);
    data_ = flush == Flush::kBegin ? begin_ : begin_ + usable_ - bytes;
    bytes_ = bytes;
  }
  char* data() { return data_; }
  bool IntactBeside() const {
    for (const char* p = begin_; p < begin_ + usable_; ++p) {
      if (p >= data_ && p < data_ + bytes_) continue;
      if (!IsNan(*p)) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char kNan = 0xff;
  static bool IsNan(char c) { return static_cast<unsigned char>(c) == kNan; }
  char *begin_ = nullptr, *data_ = nullptr;
  size_t usable_ = 0, bytes_ = 0;
};

// One operator and shape, and what is computed of two sets of inputs.
struct Problem {
  const OperatorEntry* entry = nullptr;
  const Backend* backend = nullptr;
  proto::Shape shape;
  tuning::Algorithm algorithm;
  std::vector<OperandSpec> specs;
  struct Inputs {
    std::vector<std::vector<double>> values;     // of each operand
    std::vector<std::vector<double>> reference;  // of each output
  };
  std::vector<Inputs> inputs;
};

absl::StatusOr<Problem> MakeProblem(const std::string& op,
                                    const std::string& shape) {
  Problem problem;
  problem.entry = Registry::Get().Find(op);
  if (problem.entry == nullptr) return Registry::Get().UnknownOperator(op);
  OPTRAIL_ASSIGN_OR_RETURN(problem.backend,
                           problem.entry->FindBackend(proto::CPU, "halide"));
  OPTRAIL_ASSIGN_OR_RETURN(problem.shape, tuning::ParseShape(shape));
  OPTRAIL_RETURN_IF_ERROR(CheckShape(*problem.entry->op, problem.shape));
  OPTRAIL_ASSIGN_OR_RETURN(const auto configs,
                           problem.backend->Configs(problem.shape, 2));
  problem.algorithm =
      dynamic_cast<const tuning::TraceSource&>(*configs).algorithm();
  OPTRAIL_ASSIGN_OR_RETURN(problem.specs,
                           problem.entry->op->Operands(problem.shape));
  for (const Values values : {Values::kHard, Values::kTypical}) {
    Problem::Inputs inputs;
    uint64_t seed = 0;
    for (const OperandSpec& spec : problem.specs) {
      inputs.values.emplace_back();
      if (spec.role == Role::kInput) {
        inputs.values.back() = RandomValues(spec, ++seed, values);
      }
    }
    inputs.reference =
        problem.entry->op->Reference(problem.shape, inputs.values);
    problem.inputs.push_back(std::move(inputs));
  }
  return problem;
}

// DataLoss: it is wrong, or wrote beside its operands.
absl::Status RunOnce(const Problem& problem, const Problem::Inputs& inputs,
                     FencedMemory::Flush flush, Runnable& runnable) {
  std::vector<FencedMemory> operands;
  std::vector<void*> addresses;
  for (size_t i = 0; i < problem.specs.size(); ++i) {
    const OperandSpec& spec = problem.specs[i];
    operands.emplace_back(spec.size_bytes(), flush);
    if (spec.role == Role::kInput) {
      EncodeValues(spec.data_type, inputs.values[i], operands[i].data());
    }
    addresses.push_back(operands[i].data());
  }
  if (const absl::Status error = runnable.Run(addresses); !error.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("ended by its own assertions: ", error.message()));
  }
  size_t output = 0;
  for (size_t i = 0; i < problem.specs.size(); ++i) {
    const OperandSpec& spec = problem.specs[i];
    if (!operands[i].IntactBeside()) {
      return absl::DataLossError(
          absl::StrCat("memory beside ", spec.name, " was overwritten"));
    }
    if (spec.role == Role::kInput) continue;
    const CompareResult compared =
        Compare(spec.data_type, operands[i].data(), inputs.reference[output++],
                problem.entry->op->ToleranceFor(problem.shape));
    if (!compared.ok()) {
      return absl::DataLossError(absl::StrCat(
          compared.wrong_count, " elements of ", spec.name,
          " are wrong, the first at ", compared.first_wrong_index, ": ",
          compared.first_wrong_value, ", not ", compared.first_wrong_expected));
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const Problem& problem, const Artifact& artifact,
                 const proto::Config& config) {
  // What was never computed is not 0 by chance.
  mallopt(M_PERTURB, 0x80);
  OPTRAIL_ASSIGN_OR_RETURN(const auto type, FindDeviceType(proto::CPU));
  DeviceOptions options;
  options.threads = 2;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                           type->Make(options));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Runnable> runnable,
                           Runnable::Load(*problem.backend, artifact,
                                          problem.shape, config, *device));
  for (const Problem::Inputs& inputs : problem.inputs) {
    for (const auto flush :
         {FencedMemory::Flush::kBegin, FencedMemory::Flush::kEnd}) {
      OPTRAIL_RETURN_IF_ERROR(RunOnce(problem, inputs, flush, *runnable));
    }
  }
  return absl::OkStatus();
}

// In a process of its own, which may crash or hang. DeadlineExceeded: it ran
// for too long; Internal: it ended.
absl::Status RunApart(const Problem& problem, const Artifact& artifact,
                      const proto::Config& config) {
  constexpr rlim_t kSeconds = 30;  // of processor time
  int fds[2];
  if (pipe(fds) != 0) return absl::InternalError(std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) return absl::InternalError(std::strerror(errno));
  if (child == 0) {
    const rlimit cpu = {kSeconds, kSeconds + 1}, no_core = {0, 0};
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &no_core);
    const absl::Status status = Run(problem, artifact, config);
    const std::string text =
        static_cast<char>(status.code()) + std::string(status.message());
    const ssize_t written = write(fds[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(fds[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fds[0], buffer, sizeof buffer)) != 0;) {
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  close(fds[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
    return absl::DeadlineExceededError(
        absl::StrCat("ran longer than ", kSeconds, " s"));
  }
  if (WIFSIGNALED(status)) {
    return absl::InternalError(
        absl::StrCat("ended by ", strsignal(WTERMSIG(status))));
  }
  if (text.empty()) return absl::InternalError("said nothing");
  return absl::Status(static_cast<absl::StatusCode>(text[0]), text.substr(1));
}

class RandomTracesTest : public testing::Test {
 protected:
  // Without threads, for it forks.
  void SetUp() override {
    const auto type = FindDeviceType(proto::CPU);
    ASSERT_TRUE(type.ok());
    auto device = (*type)->Make(DeviceOptions());
    ASSERT_TRUE(device.ok()) << device.status().message();
    target_.kind = proto::CPU;
    target_.isa = "native";
    target_.hardware = (*device)->hardware();
  }

  // Empty where there is Halide.
  std::string WhyUnsupported(const std::string& op) const {
    const OperatorEntry* const entry = Registry::Get().Find(op);
    const auto backend = entry->FindBackend(proto::CPU, "halide");
    return std::string((*backend)->Id(target_).status().message());
  }

  absl::StatusOr<Artifact> Compile(const Problem& problem,
                                   const proto::Config& config) const {
    OPTRAIL_ASSIGN_OR_RETURN(
        const Recipe recipe,
        problem.backend->Describe({problem.shape, config, target_}));
    return problem.backend->Compile(recipe);
  }

  Target target_;
};

struct Tally {
  int drawn = 0, matched = 0, by_trace = 0, by_halide = 0, by_bounds = 0,
      by_assertion = 0, slow = 0;

  void Add(const Tally& other) {
    drawn += other.drawn;
    matched += other.matched;
    by_trace += other.by_trace;
    by_halide += other.by_halide;
    by_bounds += other.by_bounds;
    by_assertion += other.by_assertion;
    slow += other.slow;
  }
  std::string ToText() const {
    return absl::StrCat(drawn, " drawn: ", matched,
                        " match, refused by the trace check ", by_trace,
                        ", by Halide ", by_halide, ", by the bounds check ",
                        by_bounds, ", by its own assertions ", by_assertion,
                        "; ", slow, " ran too long");
  }
};

// Repeats the finding of a campaign.
TEST_F(RandomTracesTest, TheTraceOfTheFlag) {
  if (absl::GetFlag(FLAGS_trace).empty()) GTEST_SKIP() << "no --trace";
  const auto problem =
      MakeProblem(absl::GetFlag(FLAGS_op), absl::GetFlag(FLAGS_shape));
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  const auto trace = tuning::ParseTrace(absl::GetFlag(FLAGS_trace));
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  tuning::Decisions decisions = tuning::Decisions::Replay(*trace);
  const auto program =
      tuning::Derive(problem->algorithm, tuning::Machine(), decisions);
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::cout << problem->algorithm.ToText() << program->StepsText()
            << program->LoopsText();
  const proto::Config config = tuning::ConfigOf(*trace);
  const auto artifact = Compile(*problem, config);
  ASSERT_TRUE(artifact.ok()) << artifact.status().message();
  const absl::Status status = RunApart(*problem, *artifact, config);
  EXPECT_TRUE(status.ok()) << status.message();
}

// One test for each operator, so that they may run side by side.
class EveryOperatorTest : public RandomTracesTest,
                          public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    RandomTracesTest::SetUp();
    const std::string only = absl::GetFlag(FLAGS_op);
    if (!only.empty() && only != GetParam()) GTEST_SKIP() << "--op=" << only;
    ASSERT_NE(Registry::Get().Find(GetParam()), nullptr);
    const std::string why = WhyUnsupported(GetParam());
    if (!why.empty()) GTEST_SKIP() << why;
  }

  static void TearDownTestSuite() {
    if (all_.drawn == 0) return;
    std::cout << all_.ToText() << "\n";
    for (const auto& [why, count] : reasons_) {
      std::cout << "  " << count << " x " << why << "\n";
    }
  }

  static Tally all_;
  static std::map<std::string, int> reasons_;
};
Tally EveryOperatorTest::all_;
std::map<std::string, int> EveryOperatorTest::reasons_;

TEST_P(EveryOperatorTest, CompileAndMatchOrAreRefusedWithAReason) {
  Tally of_operator;
  for (const std::string& text : Shapes().at(GetParam())) {
    const std::string only = absl::GetFlag(FLAGS_shape);
    if (!only.empty() && only != text) continue;
    const auto problem = MakeProblem(GetParam(), text);
    ASSERT_TRUE(problem.ok()) << problem.status().message();
    Rng rng(absl::GetFlag(FLAGS_seed));
    std::set<std::string> seen;
    Tally tally;
    // Small algorithms have few programs.
    const int traces = absl::GetFlag(FLAGS_traces);
    for (int tries = 0; tally.drawn < traces && tries < 20 * traces; ++tries) {
      tuning::Machine machine;
      machine.threads = 2;
      tuning::Decisions decisions = tries % 2 == 0
                                        ? tuning::Decisions::Draw(rng)
                                        : tuning::Decisions::DrawAny(rng);
      const auto program =
          tuning::Derive(problem->algorithm, machine, decisions);
      const proto::Config config = tuning::ConfigOf(decisions.trace());
      if (!seen.insert(program.ok() ? program->StepsText()
                                    : tuning::CanonicalText(config))
               .second) {
        continue;
      }
      ++tally.drawn;
      const std::string what = absl::StrCat(GetParam(), " ", text, " ",
                                            tuning::CanonicalText(config));
      const auto artifact = Compile(*problem, config);
      absl::Status status = artifact.status();
      if (status.ok()) status = RunApart(*problem, *artifact, config);
      if (status.ok()) {
        ++tally.matched;
        continue;
      }
      EXPECT_FALSE(status.message().empty()) << what;
      ++reasons_[std::string(status.message().substr(0, 100))];
      if (absl::IsFailedPrecondition(status)) {
        ++tally.by_assertion;
      } else if (absl::IsDeadlineExceeded(status)) {
        ++tally.slow;
        std::cout << what << ": " << status.message() << "\n";
      } else if (!program.ok()) {
        EXPECT_EQ(status, program.status()) << what;
        ++tally.by_trace;
      } else if (absl::IsInvalidArgument(status)) {
        ++(artifact.ok() ? tally.by_bounds : tally.by_halide);
      } else {
        ADD_FAILURE() << what << ": " << status.message();
      }
    }
    std::cout << GetParam() << " " << text << ": " << tally.ToText()
              << std::endl;
    of_operator.Add(tally);
  }
  EXPECT_GT(of_operator.matched, of_operator.by_halide + of_operator.by_bounds);
  all_.Add(of_operator);
}

std::vector<std::string> OperatorsOf(
    const std::map<std::string, std::vector<std::string>>& shapes) {
  std::vector<std::string> operators;
  for (const auto& [name, unused] : shapes) operators.push_back(name);
  return operators;
}

INSTANTIATE_TEST_SUITE_P(All, EveryOperatorTest,
                         testing::ValuesIn(OperatorsOf(Shapes())),
                         [](const auto& tested) {
                           return std::string(tested.param);
                         });

// What nobody tuned must run, whatever the size.
const std::map<std::string, std::vector<std::string>>& OddShapes() {
  static const auto& shapes = *new std::map<std::string,
                                            std::vector<std::string>>{
      {"attention",
       {"batch=1,heads=1,queries=1,keys=1,d=1/f32",
        "batch=1,heads=2,queries=131,keys=257,d=67/causal=yes/f32"}},
      {"batched_matmul",
       {"batch=1,m=1,n=1,k=1/f32", "batch=3,m=31,n=61,k=127/transposed=b/f32"}},
      {"conv_bn_relu",
       {"n=1,h=1,w=1,c=1,k=1,r=1,s=1/f32",
        "n=3,h=17,w=5,c=19,k=23,r=3,s=3/padding=1,stride=2/f32"}},
      {"depthwise_conv2d",
       {"n=1,h=1,w=1,c=1,r=1,s=1/f32",
        "n=1,h=19,w=23,c=131,r=3,s=3/padding=1,stride=2/f32"}},
      {"embedding_bag",
       {"rows=1,cols=1,bags=1,lookups=1/f32",
        "rows=101,cols=131,bags=37,lookups=23/f32"}},
      {"gelu", {"n=1/f32", "n=4099/approximation=tanh/f32"}},
      {"layer_norm_backward",
       {"rows=1,cols=1/f32", "rows=131,cols=257/f32", "rows=1,cols=67/f32"}},
      {"rms_norm",
       {"rows=1,cols=1/f32", "rows=7,cols=1021/statistics=written/f32"}},
      {"rms_norm_backward", {"rows=1,cols=1/f32", "rows=61,cols=127/f32"}},
      {"stencil",
       {"h=3,w=3/steps=1/f32", "h=67,w=131/f32", "h=37,w=41/steps=8/f32"}},
      {"layer_norm", {"rows=1,cols=1/f32", "rows=3,cols=131/f32"}},
      {"linear", {"m=1,n=1,k=1/activation=gelu/f32"}},
      {"matmul",
       {"m=1,n=1,k=1/f32", "m=1,n=1,k=4099/f32", "m=1,n=104,k=64/f32",
        "m=136,n=104,k=128/f32", "m=127,n=251,k=509/f32", "m=2,n=9,k=17/f32",
        "m=31,n=15,k=31/f32", "m=7,n=7,k=7/f32", "m=1,n=1000,k=2048/f32",
        "m=100,n=130,k=20/f32", "m=65,n=129,k=2111/f32",
        "m=256,n=1,k=256/f32"}},
      {"softmax", {"rows=1,cols=1/f32", "rows=7,cols=1021/f32"}},
      {"sum", {"rows=1,cols=1/axis=all/f32", "rows=131,cols=257/axis=all/f32"}},
      {"transpose", {"rows=1,cols=1/f32", "rows=101,cols=1/f32"}},
  };
  return shapes;
}

class EverySizeTest : public EveryOperatorTest {};

TEST_P(EverySizeTest, TheDefaultFits) {
  const proto::Config config = *tuning::ParseConfig("algorithm=default");
  for (const std::string& text : OddShapes().at(GetParam())) {
    const auto problem = MakeProblem(GetParam(), text);
    ASSERT_TRUE(problem.ok()) << text << ": " << problem.status().message();
    const auto artifact = Compile(*problem, config);
    ASSERT_TRUE(artifact.ok()) << text << ": " << artifact.status().message();
    const absl::Status status = RunApart(*problem, *artifact, config);
    EXPECT_TRUE(status.ok()) << text << ": " << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(All, EverySizeTest,
                         testing::ValuesIn(OperatorsOf(OddShapes())),
                         [](const auto& tested) {
                           return std::string(tested.param);
                         });

// gelu is x or 0 there, whatever its error function overflows to; infinities
// give what the formula gives.
TEST_F(RandomTracesTest, GeluOfTheLargestValues) {
  if (const std::string why = WhyUnsupported("linear"); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {
      0,   -0.0, 5.7,  -5.7,  12,   -12,   1e4,      -1e4,
      1e9, -1e9, 1e20, -1e20, 3e38, -3e38, infinity, -infinity};
  const std::vector<double> zeros(values.size(), 0);
  const std::vector<std::vector<double>> of_gelu = {values, {}};
  const std::vector<std::vector<double>> of_linear = {{1}, values, zeros, {}};
  for (const auto& [op, shape, inputs] :
       {std::make_tuple("gelu", "n=16/f32", of_gelu),
        std::make_tuple("linear", "m=1,n=16,k=1/activation=gelu/f32",
                        of_linear)}) {
    auto problem = MakeProblem(op, shape);
    ASSERT_TRUE(problem.ok()) << problem.status().message();
    ASSERT_EQ(problem->specs.size(), inputs.size());
    problem->inputs = {
        {inputs, problem->entry->op->Reference(problem->shape, inputs)}};
    const proto::Config config = *tuning::ParseConfig("algorithm=default");
    const auto artifact = Compile(*problem, config);
    ASSERT_TRUE(artifact.ok()) << artifact.status().message();
    const absl::Status status = RunApart(*problem, *artifact, config);
    EXPECT_TRUE(status.ok()) << op << ": " << status.message();
  }
}

TEST_F(RandomTracesTest, ATraceIsReplayedToTheSameBytes) {
  const OperatorEntry* const entry = Registry::Get().Find("matmul");
  ASSERT_NE(entry, nullptr);
  const Backend* const backend = *entry->FindBackend(proto::CPU, "halide");
  if (const auto id = backend->Id(target_); !id.ok()) {
    GTEST_SKIP() << id.status().message();
  }
  const proto::Shape shape = *tuning::ParseShape("m=37,n=67,k=45/f32");
  const proto::Config config = *tuning::ParseConfig("algorithm=default");
  const auto recipe = backend->Describe({shape, config, target_});
  ASSERT_TRUE(recipe.ok());
  const auto first = backend->Compile(*recipe);
  ASSERT_TRUE(first.ok()) << first.status().message();
  // Another in between, which would move on whatever is counted.
  const proto::Shape other = *tuning::ParseShape("m=8,n=32,k=16/f32");
  const auto between = backend->Describe({other, config, target_});
  ASSERT_TRUE(between.ok());
  ASSERT_TRUE(backend->Compile(*between).ok());
  const auto second = backend->Compile(*recipe);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->bytes, second->bytes);
}

// In a later version, too, as long as nothing that decides about it changed:
// what does is part of the backend's id and of the cache's keys.
TEST_F(RandomTracesTest, ARuleThatIsNewIsNoticed) {
  class Another : public tuning::SketchRule {
   public:
    std::string name() const override { return "another"; }
    void Apply(const tuning::Machine&, int, tuning::Decisions&,
               tuning::Program&) const override {}
  };
  const OperatorEntry* const entry = Registry::Get().Find("matmul");
  ASSERT_NE(entry, nullptr);
  const Backend* const backend = *entry->FindBackend(proto::CPU, "halide");
  const auto id = backend->Id(target_);
  if (!id.ok()) GTEST_SKIP() << id.status().message();
  const proto::Shape shape = *tuning::ParseShape("m=8,n=32,k=16/f32");
  const proto::Config config = *tuning::ParseConfig("algorithm=default");
  const CompileRequest request = {shape, config, target_};
  const auto recipe = backend->Describe(request);
  ASSERT_TRUE(recipe.ok());
  ASSERT_TRUE(tuning::RegisterSketchRule(95, std::make_unique<Another>()));
  EXPECT_NE(*backend->Id(target_), *id);
  const auto changed = backend->Describe(request);
  ASSERT_TRUE(changed.ok());
  EXPECT_NE(changed->Key(), recipe->Key());
}

TEST_F(RandomTracesTest, WhatDoesNotFitIsRefusedBeforeItIsCompiled) {
  const OperatorEntry* const entry = Registry::Get().Find("matmul");
  ASSERT_NE(entry, nullptr);
  const Backend* const backend = *entry->FindBackend(proto::CPU, "halide");
  if (const auto id = backend->Id(target_); !id.ok()) {
    GTEST_SKIP() << id.status().message();
  }
  const proto::Shape shape = *tuning::ParseShape("m=37,n=67,k=45/f32");
  const proto::Config config = *tuning::ParseConfig("s0_at=99");
  const auto recipe = backend->Describe({shape, config, target_});
  ASSERT_TRUE(recipe.ok());
  const auto artifact = backend->Compile(*recipe);
  ASSERT_FALSE(artifact.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(artifact.status()));
  EXPECT_NE(artifact.status().message().find("trace: decision"),
            absl::string_view::npos)
      << artifact.status().message();
}

}  // namespace
}  // namespace optrail::ops

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
