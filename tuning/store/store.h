#ifndef OPTRAIL_TUNING_STORE_STORE_H_
#define OPTRAIL_TUNING_STORE_STORE_H_

// TunedConfigStore holds the verified winners of tuning sessions and finds the
// one to run with. Two layers: checked-in files (embedded or in the source
// tree), and an overlay directory that `bazel run` writes and that wins.
//
//   StoreOptions options;
//   options.checked_in = embedded_files;
//   options.overlay_directory = ".optrail/store";
//   ASSIGN_OR_RETURN(TunedConfigStore store, TunedConfigStore::Load(options));
//   LookupRequest request;
//   request.operator_name = "softmax";
//   request.shape = &shape;
//   ...
//   const LookupResult found = store.Lookup(request);
//   if (found.config != nullptr) Run(*found.config);
//
// A loaded store is immutable; lookups take no lock and never tune. Changing
// the files is the business of store_files.h. Formats and rules:
// docs/tuned_configs.md.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"
#include "tuning/proto/store.pb.h"

namespace optrail::tuning {

// A file of tuned configs: its path (for messages) and its text.
struct TunedFile {
  std::string path;
  std::string text;
};

struct StoreOptions {
  // Files as embedded by the operator macro.
  std::vector<TunedFile> checked_in;
  // And/or the tree `<directory>/<op>/tuned/<hardware_id>.textproto`, such as
  // "ops". Empty: none.
  std::string checked_in_directory;
  // `<directory>/<op>/<hardware_id>.textproto`. Empty or missing: no overlay.
  std::string overlay_directory;
};

enum class LookupSource {
  kExact,    // tuned for this shape on this hardware
  kNearest,  // tuned for another shape or on another hardware
  kDefault,  // nothing fits
};
absl::string_view LookupSourceName(LookupSource source);  // "exact", ...

// Whether a config can run here: valid in the bound space and, for CPU kernels,
// instantiated. It must be a pure function of shape, config and this process:
// its answer for an exact match is remembered.
using ConfigPredicate = absl::FunctionRef<bool(const proto::Config&)>;

struct LookupRequest {
  absl::string_view operator_name;
  const proto::Shape* shape = nullptr;  // required
  int threads = 1;
  proto::CacheMode cache_mode = proto::HOT;
  absl::string_view hardware_id;
  proto::DeviceKind device_kind = proto::CPU;
  absl::string_view kernel_id;  // of the kernel that would run; "" if unknown
  // nullptr accepts every config.
  const ConfigPredicate* is_valid = nullptr;
};

// Points into the store and lives as long as it does.
struct LookupResult {
  LookupSource source = LookupSource::kDefault;
  const proto::Config* config = nullptr;      // nullptr if kDefault
  const proto::TunedConfig* tuned = nullptr;  // provenance; nullptr if kDefault
  absl::string_view hardware_id;              // on which it was tuned
  // The winner was measured with another kernel (or the id is unknown).
  bool unverified = false;
  bool from_overlay = false;
  // Of the shapes; 0 for an equal one. docs/tuned_configs.md has the formula.
  double shape_distance = 0;
  // For people: what was substituted or refused, and why. Empty if all is well.
  std::string warning;
};

class TunedConfigStore {
 public:
  // A file that can't be read is left out and said in warnings(); the others
  // are used. Fails only if a checked-in file is broken: that is a fault of the
  // source tree, which `bazel test` shall see.
  static absl::StatusOr<TunedConfigStore> Load(const StoreOptions& options);

  TunedConfigStore();
  ~TunedConfigStore();
  TunedConfigStore(TunedConfigStore&&) noexcept;
  TunedConfigStore& operator=(TunedConfigStore&&) noexcept;

  // Exact; then the nearest shape (same operator, device kind, data types and
  // hardware) whose config is valid here; then the same on the nearest other
  // hardware; then kDefault. Thread-safe, lock-free; an exact lookup takes
  // under 100 ns once warm.
  LookupResult Lookup(const LookupRequest& request) const;

  // Everything in the store, overlay over checked-in: one message per operator,
  // device kind and hardware, sorted.
  std::vector<proto::TunedConfigs> Contents() const;

  // Files that were left out and why.
  const std::vector<std::string>& warnings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// sum over dimensions of |log2(a / b)|; nullopt if the shapes differ in their
// dimensions' names or in their data types.
absl::optional<double> ShapeDistance(const proto::Shape& a,
                                     const proto::Shape& b);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_STORE_H_
