#include "cli/store_tables.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "base/text/units.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/store/tuned_entry.h"

namespace optrail::cli {
namespace {

Cell TextOrNone(const std::string& text) {
  return text.empty() ? Cell::None() : Cell(text);
}

const std::string& ObjectiveName(const std::string& objective) {
  static const std::string* const time = new std::string("time");
  return objective.empty() ? *time : objective;
}

std::string BackendName(proto::DeviceKind kind, const std::string& backend) {
  return backend.empty() ? tuning::DeviceName(kind) : backend;
}

std::string ConfigOf(const proto::BestBackend& best) {
  return best.entries_size() > 0 ? best.entries(0).config() : "";
}

// The columns of an entry's key, then `more`.
std::vector<Column> KeyColumnsAnd(std::vector<Column> more) {
  std::vector<Column> columns = {{"operator"},
                                 {"hardware"},
                                 {"shape"},
                                 {"threads", Align::kRight},
                                 {"cache"},
                                 {"backend"},
                                 {"for", Align::kLeft, "objective"}};
  std::move(more.begin(), more.end(), std::back_inserter(columns));
  return columns;
}

// The cells of these columns, then `more`.
template <typename Entry>
std::vector<Cell> KeyCellsAnd(const std::string& operator_name,
                              const std::string& hardware_id,
                              const Entry& entry, const std::string& backend,
                              std::vector<Cell> more) {
  std::vector<Cell> cells = {operator_name,
                             hardware_id,
                             entry.shape(),
                             Cell::Integer(entry.threads()),
                             tuning::CacheModeName(entry.cache_mode()),
                             backend,
                             ObjectiveName(entry.objective())};
  std::move(more.begin(), more.end(), std::back_inserter(cells));
  return cells;
}

}  // namespace

StoreTable::StoreTable()
    : whole_(KeyColumnsAnd({{"time", Align::kRight, "time_ns"},
                            {"speed-up", Align::kRight, "speedup"},
                            {"layer"},
                            {"config"},
                            {"numerics"},
                            {"bucket"}})),
      short_({{"operator", Align::kLeft, "", Clip::kFold},
              {"shape, threads, cache", Align::kLeft, "", Clip::kFold},
              {"hardware", Align::kLeft, "", Clip::kFold},
              {"time", Align::kRight},
              {"speed-up", Align::kRight},
              {"config", Align::kLeft, "", Clip::kFold}}) {}

void StoreTable::Add(const proto::TunedConfigs& file, const char* layer) {
  for (const auto& tuned : file.tuned()) Add(file, tuned, layer);
  for (const auto& best : file.best()) Add(file, best, layer);
}

void StoreTable::Add(const proto::TunedConfigs& file,
                     const proto::TunedConfig& tuned, const char* layer) {
  AddRow(file, tuned, layer, BackendName(file.device_kind(), tuned.backend()),
         absl::StrCat(tuning::EntryText(tuned),
                      tuned.bucket().empty() || tuned.bucket() == tuned.shape()
                          ? ""
                          : absl::StrCat(", for ", tuned.bucket()),
                      tuning::IsBatchInvariant(tuned.numerics())
                          ? ", batch-invariant"
                          : ""),
         tuned.time_ns(), tuning::SpeedUpOverDefault(tuned), tuned.config(),
         tuned.numerics(), tuned.bucket());
}

void StoreTable::Add(const proto::TunedConfigs& file,
                     const proto::BestBackend& best, const char* layer) {
  const proto::BestBackend::Entry& first = best.entries(0);
  double over_own = 0;
  for (const proto::BestBackend::Entry& entry : best.entries()) {
    if (entry.backend().empty()) over_own = entry.ratio();
  }
  const std::string name =
      absl::StrCat("best: ", BackendName(file.device_kind(), first.backend()));
  AddRow(file, best, layer, name,
         absl::StrCat(tuning::EntryText(best), ", ", name), first.time_ns(),
         over_own, first.config(), /*numerics=*/"", /*bucket=*/"");
}

template <typename Entry>
void StoreTable::AddRow(const proto::TunedConfigs& file, const Entry& entry,
                        const char* layer, const std::string& backend,
                        const std::string& key, double time_ns, double speedup,
                        const std::string& config, const std::string& numerics,
                        const std::string& bucket) {
  const Cell time = time_ns > 0
                        ? Cell::Number(time_ns, FormatDurationNs(time_ns))
                        : Cell::None();
  const Cell gain =
      speedup > 0 ? Cell::Number(speedup, absl::StrFormat("%.2fx", speedup))
                  : Cell::None();
  whole_.AddRow(KeyCellsAnd(
      file.operator_name(), file.hardware_id(), entry, backend,
      {time, gain, layer, config, TextOrNone(numerics), TextOrNone(bucket)}));
  short_.AddRow({file.operator_name(), key,
                 absl::StrCat(file.hardware_id(), ", ", layer), time, gain,
                 config});
}

std::string StoreTable::Format(OutputFormat format) const {
  return format == OutputFormat::kTable ? short_.ToText(TerminalWidth())
                                        : whole_.Format(format);
}

DifferenceTable::DifferenceTable()
    : table_(KeyColumnsAnd(
          {{"entry"}, {"checked in"}, {"overlay"}, {"numerics"}, {"file"}})) {}

void DifferenceTable::Add(const tuning::StoreDifference& difference) {
  if (difference.is_best) {
    AddRow(difference, difference.overlay_best,
           ConfigOf(difference.checked_in_best),
           ConfigOf(difference.overlay_best),
           difference.overlay_best.entries(0).backend());
  } else {
    AddRow(difference, difference.overlay, difference.checked_in.config(),
           difference.overlay.config(), difference.overlay.backend());
  }
}

template <typename Entry>
void DifferenceTable::AddRow(const tuning::StoreDifference& difference,
                             const Entry& entry, const std::string& checked_in,
                             const std::string& overlay,
                             const std::string& backend) {
  const absl::optional<bool> changes = tuning::ChangesNumerics(difference);
  table_.AddRow(KeyCellsAnd(
      difference.operator_name, difference.hardware_id, entry,
      BackendName(difference.device_kind, backend),
      {difference.is_best ? "best backend" : "tuned",
       difference.is_new ? Cell::None() : Cell(checked_in), overlay,
       !changes.has_value() ? Cell::None()
                            : Cell(*changes ? "other bits" : "the same bits"),
       TextOrNone(difference.path)}));
}

std::string DifferenceTable::Format(OutputFormat format) const {
  return table_.Format(format);
}

}  // namespace optrail::cli
