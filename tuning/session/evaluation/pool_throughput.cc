// Trials a second of a session over several nodes whose answers are scripted:
// each node is a process that sleeps for as long as a reading takes, so that
// what is left is the cost of the session and of the pool.
//
//   bazel run //tuning/session/evaluation:pool_throughput --
//       --nodes=1,2,4 --reading_ms=20 --trials=200

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/process/subprocess.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/evaluator_pool.h"
#include "tuning/session/remote_evaluator.h"
#include "tuning/session/session.h"
#include "tuning/space/space.h"

ABSL_FLAG(std::vector<std::string>, nodes, std::vector<std::string>({"1", "2"}),
          "Numbers of nodes.");
ABSL_FLAG(int, reading_ms, 20, "How long a node takes for a reading.");
ABSL_FLAG(int, trials, 200, "Trials of each session.");
ABSL_FLAG(std::string, strategy, "random", "Of the search.");

namespace optrail::tuning {
namespace {

constexpr char kSpace[] = R"(
knob { name: "a" pow2 { min: 1 max: 1048576 } }
knob { name: "b" pow2 { min: 1 max: 1048576 } }
knob { name: "c" ints: [1, 2, 3, 4, 5, 6, 7, 8] }
default {
  set { knob: "a" int: 1 }
  set { knob: "b" int: 1 }
  set { knob: "c" int: 1 }
}
)";

class Sleeping : public OneAtATime {
 public:
  explicit Sleeping(absl::Duration reading) : reading_(reading) {}
  Evaluation Evaluate(const Request& request) override {
    absl::SleepFor(reading_);
    Evaluation answer;
    answer.mutable_trial()->set_outcome(proto::OK);
    answer.mutable_trial()->set_elapsed_ns(absl::ToInt64Nanoseconds(reading_));
    answer.mutable_trial()->set_time_ns(
        1e5 + static_cast<double>(
                  std::hash<std::string>()(CanonicalText(request.config())) %
                  100'000));
    return answer;
  }

 private:
  const absl::Duration reading_;
};

// Connects to a node that is a process of its own.
int Connection(absl::Duration reading, const std::vector<int>& others) {
  int fds[2];
  OPTRAIL_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  if (fork() == 0) {
    close(fds[0]);
    // Else the others would not see that the driver has closed theirs.
    for (const int fd : others) close(fd);
    Sleeping sleeping(reading);
    FrameChannel channel(fds[1], fds[1]);
    _exit(ServeEvaluator(channel, sleeping, {}).ok() ? 0 : 1);
  }
  close(fds[1]);
  return fds[0];
}

double TrialsPerSecond(int nodes) {
  const absl::Duration reading =
      absl::Milliseconds(absl::GetFlag(FLAGS_reading_ms));
  const auto space = *Space::Parse(kSpace, "space");
  const std::unique_ptr<BoundSpace> bound =
      *space.Bind(*ParseShape("n=8/f32"), proto::Hardware());
  SessionSetup setup;
  setup.header.set_strategy(absl::GetFlag(FLAGS_strategy));
  setup.header.set_seed(1);
  setup.header.mutable_budget()->set_trials(absl::GetFlag(FLAGS_trials));
  setup.default_config = bound->default_config();
  setup.propose = [&bound](const proto::Session& begun, int batch) {
    ProposerOptions options;
    options.batch = batch;
    return MakeProposer(*bound, begun, options);
  };
  std::vector<EvaluatorPool::Member> members;
  std::vector<int> connections;
  for (int i = 0; i < nodes; ++i) {
    const int fd = Connection(reading, connections);
    connections.push_back(fd);
    const std::string name = absl::StrCat("n", i);
    members.push_back(
        {name,
         std::make_unique<RemoteEvaluator>(
             name, [fd] { return std::make_unique<FrameChannel>(fd, fd); },
             proto::WorkerIdentity())});
  }
  EvaluatorPool pool(std::move(members), setup.default_config, *Clock::Real(),
                     {});
  const auto session = Session::Open(setup, pool, *Clock::Real());
  OPTRAIL_CHECK(session.ok());
  // The calibration is over.
  const absl::Time start = absl::Now();
  while (!(*session)->search_ended()) {
    OPTRAIL_CHECK((*session)->Advance().ok());
  }
  return static_cast<double>((*session)->trials()) /
         absl::ToDoubleSeconds(absl::Now() - start);
}

void Run() {
  double first = 0;
  for (const std::string& text : absl::GetFlag(FLAGS_nodes)) {
    int nodes = 0;
    OPTRAIL_CHECK(absl::SimpleAtoi(text, &nodes) && nodes > 0);
    const double rate = TrialsPerSecond(nodes);
    if (first == 0) first = rate;
    std::printf("%d nodes: %.1f trials a second, %.2f times the first\n", nodes,
                rate, rate / first);
    while (wait(nullptr) > 0) {
    }
  }
}

}  // namespace
}  // namespace optrail::tuning

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  optrail::tuning::Run();
  return 0;
}
