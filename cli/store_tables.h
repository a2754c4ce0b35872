#ifndef OPTRAIL_CLI_STORE_TABLES_H_
#define OPTRAIL_CLI_STORE_TABLES_H_

// The tables that `optrail store show` and `optrail store diff` print.
//
//   StoreTable table;
//   for (const proto::TunedConfigs& file : files) table.Add(file, "overlay");
//   std::cout << table.Format(OutputFormat::kJson);
//
// Times are in ns. A table copies what it is given. Thread safety: none.

#include <string>

#include "base/text/table.h"
#include "tuning/proto/store.pb.h"
#include "tuning/store/store_files.h"

namespace optrail::cli {

// Programs get a column for each part of an entry's key. People, whose lines
// are short, get one column for the whole key.
class StoreTable {
 public:
  StoreTable();
  // Adds the tuned configs of a file, then which backends are best.
  void Add(const proto::TunedConfigs& file, const char* layer);
  std::string Format(OutputFormat format) const;

 private:
  void Add(const proto::TunedConfigs& file, const proto::TunedConfig& tuned,
           const char* layer);
  // The backend that `bench --backend=best` takes, and what its config gains
  // over the device's own backend.
  void Add(const proto::TunedConfigs& file, const proto::BestBackend& best,
           const char* layer);
  template <typename Entry>
  void AddRow(const proto::TunedConfigs& file, const Entry& entry,
              const char* layer, const std::string& backend,
              const std::string& key, double time_ns, double speedup,
              const std::string& config, const std::string& numerics,
              const std::string& bucket);

  Table whole_, short_;
};

// The table for programs has a row for each entry that differs.
class DifferenceTable {
 public:
  DifferenceTable();
  void Add(const tuning::StoreDifference& difference);
  std::string Format(OutputFormat format) const;

 private:
  template <typename Entry>
  void AddRow(const tuning::StoreDifference& difference, const Entry& entry,
              const std::string& checked_in, const std::string& overlay,
              const std::string& backend);

  Table table_;
};

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_STORE_TABLES_H_
