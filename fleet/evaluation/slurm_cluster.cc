#include "fleet/evaluation/slurm_cluster.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/status_macros.h"

namespace optrail::fleet {
namespace {

constexpr char kController[] = "/usr/sbin/slurmctld";
constexpr char kNode[] = "/usr/sbin/slurmd";

absl::StatusOr<std::string> Output(const std::vector<std::string>& argv) {
  CommandOptions options;
  options.timeout = absl::Seconds(20);
  OPTRAIL_ASSIGN_OR_RETURN(const CommandResult result,
                           RunCommand(argv, options));
  if (result.exit.ok()) return result.stdout_text;
  return absl::UnavailableError(absl::StrCat(
      argv[0], ": ", result.exit.ToString(), ": ", result.stderr_text));
}

// It ends with this process, also where that is killed.
absl::StatusOr<std::unique_ptr<Subprocess>> Daemon(
    std::vector<std::string> argv) {
  argv.insert(argv.begin(), {"setpriv", "--pdeathsig=KILL"});
  SubprocessOptions options;
  options.stderr_mode = StderrMode::kDiscard;
  return Subprocess::Start(argv, options);
}

// The process alone: what it started lives on.
void KillAlone(std::unique_ptr<Subprocess>& process) {
  if (process == nullptr) return;
  kill(process->pid(), SIGKILL);
  process->Wait(absl::InfiniteDuration());
  process.reset();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlurmCluster>> SlurmCluster::Start() {
  if (!FileExists(kController) || !FileExists(kNode) || geteuid() != 0) {
    return absl::UnimplementedError(
        "unsupported here: no Slurm, or no root to start it");
  }
  std::string folder = "/tmp/optrail_slurm_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::InternalError(absl::StrCat("making ", folder));
  }
  std::unique_ptr<SlurmCluster> cluster(new SlurmCluster(folder));
  OPTRAIL_RETURN_IF_ERROR(cluster->Configure());
  setenv("SLURM_CONF", JoinPath(folder, "slurm.conf").c_str(), 1);
  OPTRAIL_RETURN_IF_ERROR(cluster->RunController());
  for (int i = 0; i < kNodes; ++i) {
    OPTRAIL_RETURN_IF_ERROR(cluster->RunNode(i));
  }
  OPTRAIL_RETURN_IF_ERROR(cluster->WaitUntilReady());
  return cluster;
}

absl::Status SlurmCluster::Configure() const {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  // PostgreSQL's port is from 20000 on.
  const int port = 10000 + getpid() % 9000;
  for (const char* name : {"state", "spool/n1", "spool/n2", "log"}) {
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(JoinPath(folder_, name)));
  }
  std::string text = absl::StrCat(
      "ClusterName=optrail\nSlurmctldHost=", host, "(127.0.0.1)\n",
      "SlurmUser=root\nSlurmdUser=root\nAuthType=auth/none\n"
      // A job that was requeued waits for so long, by default 120 s.
      "AuthInfo=cred_expire=5\n"
      "CredType=cred/none\nMpiDefault=none\n"
      "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
      "SwitchType=switch/none\nReturnToService=2\n"
      "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
      "SlurmdParameters=config_overrides\nJobRequeue=1\n"
      "SchedulerParameters=sched_interval=2,bf_interval=2\n"
      "SlurmctldTimeout=30\nSlurmdTimeout=30\nMinJobAge=10\nKillWait=2\n",
      "StateSaveLocation=", folder_, "/state\nSlurmctldPidFile=", folder_,
      "/ctld.pid\nSlurmdPidFile=", folder_,
      "/d-%n.pid\nSlurmdSpoolDir=", folder_,
      "/spool/%n\nSlurmctldLogFile=", folder_,
      "/log/ctld\nSlurmdLogFile=", folder_, "/log/d-%n\nSlurmctldPort=", port,
      "\n");
  for (int i = 1; i <= kNodes; ++i) {
    absl::StrAppend(&text, "NodeName=n", i, " NodeHostname=", host,
                    " NodeAddr=127.0.0.1 Port=", port + i,
                    " CPUs=1 RealMemory=1000\n");
  }
  absl::StrAppend(&text,
                  "PartitionName=main Nodes=n1,n2 Default=YES "
                  "MaxTime=INFINITE State=UP\n");
  return WriteFileAtomically(JoinPath(folder_, "slurm.conf"), text);
}

absl::Status SlurmCluster::WaitUntilReady() const {
  absl::Status answered;
  for (int attempt = 0; attempt < 300; ++attempt) {
    const absl::StatusOr<std::string> idle =
        Output({"sinfo", "--noheader", "--states=idle", "--format=%D"});
    if (idle.ok() && absl::StrContains(*idle, absl::StrCat(kNodes))) {
      return absl::OkStatus();
    }
    answered = idle.status();
    absl::SleepFor(absl::Milliseconds(200));
  }
  return absl::UnavailableError(
      absl::StrCat("Slurm's nodes are not idle: ", answered.message()));
}

SlurmCluster::~SlurmCluster() {
  (void)Output({"scancel", "--signal=KILL", "--full", "--user=root"});
  (void)Output({"scancel", "--user=root"});
  const absl::Time until = absl::Now() + absl::Seconds(20);
  while (absl::Now() < until) {
    const absl::StatusOr<int> jobs = CountJobs();
    if (!jobs.ok() || *jobs == 0) break;
    absl::SleepFor(absl::Milliseconds(200));
  }
  for (std::unique_ptr<Subprocess>& node : nodes_) KillAlone(node);
  KillAlone(controller_);
  (void)Output({"rm", "-rf", folder_});
  unsetenv("SLURM_CONF");
}

absl::Status SlurmCluster::KillController() {
  KillAlone(controller_);
  return absl::OkStatus();
}

absl::Status SlurmCluster::RunController() {
  OPTRAIL_ASSIGN_OR_RETURN(controller_, Daemon({kController, "-D"}));
  return absl::OkStatus();
}

absl::Status SlurmCluster::KillNode(int node) {
  KillAlone(nodes_[node]);
  return absl::OkStatus();
}

absl::Status SlurmCluster::RunNode(int node) {
  OPTRAIL_ASSIGN_OR_RETURN(
      nodes_[node], Daemon({kNode, "-D", "-N", absl::StrCat("n", node + 1)}));
  return absl::OkStatus();
}

absl::StatusOr<int> SlurmCluster::CountJobs() const {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string jobs,
      Output({"squeue", "--noheader", "--format=%i",
              "--states=PENDING,RUNNING,CONFIGURING,COMPLETING"}));
  return static_cast<int>(std::count(jobs.begin(), jobs.end(), '\n'));
}

std::string SlurmCluster::Describe() const {
  std::string text;
  for (const std::vector<std::string>& argv :
       {std::vector<std::string>{"squeue", "--states=all",
                                 "--format=%i %T %r %S %N"},
        std::vector<std::string>{"sinfo", "--Node", "--format=%N %T %E"}}) {
    const absl::StatusOr<std::string> said = Output(argv);
    absl::StrAppend(
        &text, said.ok() ? *said : std::string(said.status().message()), "\n");
  }
  return text;
}

absl::Status SlurmCluster::KeepLogs(const std::string& folder) const {
  OPTRAIL_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(folder, "jobs"), Describe()));
  return Output({"cp", "-r", JoinPath(folder_, "log"),
                 JoinPath(folder_, "slurm.conf"), folder})
      .status();
}

}  // namespace optrail::fleet
