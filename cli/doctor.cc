// `optrail doctor`: what this machine is, what works here, how noisy it is, and
// what would make its measurements better.

#include <unistd.h>

#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/process/memory_group.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "carbon/power_model.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "cli/old_journals.h"
#include "cli/shared_machine.h"
#include "ops/core/device_type.h"
#include "ops/core/registry.h"
#include "ops/device/cpu/noise.h"
#include "ops/device/energy/calibration.h"
#include "suites/command/command_flags.h"
#include "tuning/proto/canonical.h"

ABSL_FLAG(absl::Duration, probe_time, absl::Seconds(2),
          "How long to watch the machine's noise.");

namespace optrail::cli {
namespace {

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string Known(bool known, std::string text) {
  return known ? std::move(text) : "unknown";
}

std::string ValueText(const proto::HardwareAttribute& attribute) {
  switch (attribute.value_case()) {
    case proto::HardwareAttribute::kInt:
      return absl::StrCat(attribute.int_());
    case proto::HardwareAttribute::kReal:
      return absl::StrCat(attribute.real());
    case proto::HardwareAttribute::kBool:
      return attribute.bool_() ? "true" : "false";
    default:
      return attribute.text();
  }
}

void AddHardware(const suites::RunContext& context, Table& table) {
  const proto::Hardware& hardware = context.hardware;
  const auto bytes = [](bool known, int64_t value) {
    return Known(known, FormatBytes(static_cast<double>(value)));
  };
  table.AddRow({"hardware id", hardware.id()});
  table.AddRow(
      {"processor",
       absl::StrCat(hardware.model(),
                    hardware.virtual_machine() ? " (virtual machine)" : "")});
  table.AddRow(
      {"cores", Known(hardware.has_cores(), absl::StrCat(hardware.cores()))});
  const std::string l2 = bytes(hardware.has_l2_bytes(), hardware.l2_bytes());
  // The operators' spaces say which facts of other devices count (hw.*).
  const bool is_cpu = hardware.device_kind() == proto::CPU;
  table.AddRow(
      {"caches",
       !is_cpu
           ? absl::StrCat("L2 ", l2)
           : absl::StrCat(
                 "L1d ", bytes(hardware.has_l1d_bytes(), hardware.l1d_bytes()),
                 ", L2 ", l2, " per core; L3 ",
                 bytes(hardware.has_l3_bytes(), hardware.l3_bytes()))});
  table.AddRow(
      {"memory", bytes(hardware.has_memory_bytes(), hardware.memory_bytes())});
  if (is_cpu) {
    table.AddRow({"vectors", absl::StrCat(hardware.simd_bits(), " bits")});
    table.AddRow({"instructions", absl::StrJoin(hardware.features(), ", ")});
  }
  for (const proto::HardwareAttribute& attribute : hardware.attributes()) {
    table.AddRow({absl::StrCat("hw.", attribute.name()), ValueText(attribute)});
  }
  table.AddRow({"system", absl::StrCat(context.toolchain.os(), ", kernel ",
                                       context.toolchain.os_kernel())});
  table.AddRow({"build", absl::StrCat(context.toolchain.compiler(), ", ",
                                      context.toolchain.compilation_mode())});
  table.AddRow(
      {"commit",
       context.commit.id().empty()
           ? context.commit_note
           : absl::StrCat(context.commit.id().substr(0, 12),
                          context.commit.dirty() ? " with changes" : "", " on ",
                          context.commit.branch())});
}

// Whether a backend can be used, and what does its work.
std::string HereText(const ops::Backend& backend,
                     const proto::Hardware& hardware) {
  if (backend.kind() != hardware.device_kind()) {
    return absl::StrCat("not on ", tuning::DeviceName(hardware.device_kind()));
  }
  ops::Target target;
  target.kind = backend.kind();
  target.hardware = hardware;
  const absl::StatusOr<std::string> id = backend.Id(target);
  if (!id.ok()) return std::string(id.status().message());
  return backend.library().empty() ? "yes" : backend.library();
}

// How --command_memory_mib and the limit of a compiler are kept.
std::string MemoryLimitText() {
  const auto group = MemoryGroup::Enter(int64_t{1} << 50);
  if (group.ok() && (*group)->Leave().ok()) {
    return "by the kernel (a control group)";
  }
  return absl::StrCat("watched, since there can be no control group: ",
                      group.status().message());
}

void AddSupport(const suites::RunContext& context, Table& table) {
  std::vector<std::string> names;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    names.push_back(entry->op->name());
  }
  table.AddRow({"operators", absl::StrJoin(names, ", ")});
  for (const ops::DeviceType* type : ops::ListDeviceTypes()) {
    for (const ops::DeviceType::Support& support : type->DescribeSupport()) {
      table.AddRow({support.what, support.here});
    }
  }
  const auto calibration =
      ops::ReadCalibration(context.state, context.hardware.id(),
                           Clock::Real()->WallNs(), absl::Hours(24 * 7));
  table.AddRow({"energy calibration",
                calibration.ok()
                    ? ops::CalibrationText(*calibration)
                    : "none yet: the first metered process makes it"});
  table.AddRow({"energy model, for footprints and plans",
                carbon::ModelText(context.hardware, carbon::PowerModel())});
  table.AddRow({"memory limits", MemoryLimitText()});
  // By what is said of it, since a library serves many operators.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> here;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    for (const auto& [name, backend] : entry->backends) {
      if (name == ops::OwnBackendName(backend->kind())) continue;
      here[{name, HereText(*backend, context.hardware)}].push_back(
          entry->op->name());
    }
  }
  for (const auto& [backend, operators] : here) {
    const std::string of = operators.size() == names.size()
                               ? "all operators"
                               : absl::StrJoin(operators, ", ");
    table.AddRow({absl::StrCat("backend ", backend.first),
                  absl::StrCat(backend.second, " (", of, ")")});
  }
}

// Prints the known ceilings in the device's own terms.
void AddCeilings(const proto::Ceilings& ceilings,
                 const proto::Hardware& hardware, Table& table) {
  const auto add = [&](absl::string_view what, double value,
                       absl::string_view unit) {
    if (value > 0) table.AddRow({std::string(what), FormatRate(value, unit)});
  };
  const auto add_by_threads = [&](absl::string_view what, double one,
                                  double all, absl::string_view unit) {
    if (one == all) return add(what, all, unit);  // a kernel has it whole
    add(absl::StrCat(what, ", one thread"), one, unit);
    add(absl::StrCat(what, ", all threads"), all, unit);
  };
  add_by_threads(
      absl::StrCat("peak ",
                   ceilings.flop_of().empty() ? "f32" : ceilings.flop_of()),
      ceilings.flop_per_s_one_thread(), ceilings.flop_per_s_all_threads(),
      "FLOP/s");
  const char* const one_thread =
      hardware.device_kind() == proto::CPU ? ", one thread" : "";
  add(absl::StrCat("L1 read", one_thread), ceilings.l1_read_bytes_per_s(),
      "B/s");
  add(absl::StrCat("L2 read", one_thread), ceilings.l2_read_bytes_per_s(),
      "B/s");
  add(absl::StrCat("L3 read", one_thread), ceilings.l3_read_bytes_per_s(),
      "B/s");
  if (ceilings.l2_bytes_seen() > 0) {
    const auto seen = [](int64_t bytes) {
      return bytes > 0 ? FormatBytes(static_cast<double>(bytes)) : "none";
    };
    table.AddRow({"caches, as rates show them",
                  absl::StrCat("L2 ", seen(ceilings.l2_bytes_seen()),
                               " per core; L3 ", seen(ceilings.l3_bytes_seen()),
                               " (estimated: this machine hides them)")});
  }
  add_by_threads("memory read", ceilings.memory_read_bytes_per_s_one_thread(),
                 ceilings.memory_read_bytes_per_s_all_threads(), "B/s");
  if (ceilings.has_memory_buffer_bytes()) {
    table.AddRow(
        {"memory read from",
         absl::StrCat(
             FormatBytes(static_cast<double>(ceilings.memory_buffer_bytes())),
             ceilings.memory_buffer_bytes() < 2 * hardware.l3_bytes()
                 ? ", bounded by memory: some of it lies in the L3"
                 : "")});
  }
  add_by_threads("memory copy", ceilings.memory_copy_bytes_per_s_one_thread(),
                 ceilings.memory_copy_bytes_per_s_all_threads(), "B/s");
}

std::string Percent(absl::optional<double> fraction) {
  return fraction.has_value() ? FormatPercent(*fraction, 2) : "unknown";
}

std::vector<std::string> Advice(const suites::RunContext& context,
                                const ops::NoiseReport& noise) {
  std::vector<std::string> advice;
  if (context.toolchain.compilation_mode() != "opt") {
    advice.push_back(
        "this binary is not optimised: build with --compilation_mode=opt, the "
        "default of this repository");
  }
  const double waiting = noise.run_delay_fraction.value_or(0);
  if (waiting > 0.02) {
    advice.push_back(
        "other processes want this core: stop them, or expect measurements to "
        "be marked as contended");
  }
  if (IsSharedMachine(waiting)) {
    advice.push_back(absl::StrCat(
        "programs that you gate wait for a core ", FormatPercent(waiting, 0),
        " of their time: judge the time on the processor "
        "(optrail gate --metric=cpu_time) and run at least ",
        ProcessesFor(waiting),
        " processes (--max_rounds=", ProcessesFor(waiting),
        "; bench --processes=", ProcessesFor(waiting), ")"));
  }
  if (noise.steal_fraction.value_or(0) > 0.01) {
    advice.push_back(
        "the hypervisor runs others on these cores: gate with interleaved A/B "
        "and more processes, not against old runs");
  }
  if (noise.p95_over_median > 1.1) {
    advice.push_back(absl::StrCat(
        "one loop in twenty is ", FormatPercent(noise.p95_over_median - 1, 0),
        " slower than the median: use at least 10 processes per benchmark "
        "(--processes=10)"));
  }
  const std::string governor =
      ReadLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty() && governor != "performance") {
    advice.push_back(absl::StrCat(
        "the clock governor is \"", governor,
        "\": as root, cpupower frequency-set --governor performance"));
  }
  const std::string pages =
      ReadLine("/sys/kernel/mm/transparent_hugepage/enabled");
  if (absl::StrContains(pages, "[never]")) {
    advice.push_back(
        "huge pages are off: as root, echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled");
  }
  return advice;
}

absl::StatusOr<int> Doctor() {
  OPTRAIL_RETURN_IF_ERROR(CheckDuration(
      "probe_time", absl::GetFlag(FLAGS_probe_time), absl::Milliseconds(1)));
  OPTRAIL_ASSIGN_OR_RETURN(const suites::RunContext context,
                           suites::RunContextFromFlags());
  Table table({{"what", Align::kLeft, "", Clip::kNever},
               {"here", Align::kLeft, "value", Clip::kFold}});
  AddHardware(context, table);
  AddSupport(context, table);
  if (isatty(STDERR_FILENO)) std::cerr << "measuring ceilings and noise ...\r";
  AddCeilings(suites::CeilingsOf(context), context.hardware, table);
  const ops::NoiseReport noise =
      ops::ProbeNoise(absl::GetFlag(FLAGS_probe_time));
  table.AddRow({"noise, 95% of loops within",
                absl::StrCat(FormatPercent(noise.p95_over_median - 1),
                             " of the median")});
  table.AddRow({"noise, slowest loop",
                absl::StrFormat("%.2fx the median", noise.max_over_median)});
  table.AddRow({"noise, first half against second",
                absl::StrFormat("%.3fx", noise.drift)});
  table.AddRow({"waiting for a core", Percent(noise.run_delay_fraction)});
  table.AddRow({"taken by the hypervisor", Percent(noise.steal_fraction)});
  table.AddRow(
      {"journals of unfinished tuning",
       OldJournalsText(FindOldJournals(context.state,
                                       Clock::Real()->WallNs() / 1'000'000'000),
                       context.state)});
  const std::vector<std::string> advice = Advice(context, noise);
  for (size_t i = 0; i < advice.size(); ++i) {
    table.AddRow({absl::StrCat("advice ", i + 1), advice[i]});
  }
  const OutputFormat format = absl::GetFlag(FLAGS_format);
  // Advice is worth more than a table that fits.
  std::cout << table.Format(format, TerminalWidth());
  return 0;
}

}  // namespace

suites::Command DoctorCommand() {
  suites::Command command;
  command.name = "doctor";
  command.summary = "Says what this machine is and how well it measures.";
  command.details = HelpText("doctor");
  command.flags = {"device", "probe_time", "format", "history", "store"};
  command.run = [](const std::vector<std::string>&) { return Doctor(); };
  return command;
}

}  // namespace optrail::cli
