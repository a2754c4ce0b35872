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
// docs/reference/tuned_configs.md.

#include <cstdint>
#include <map>
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
#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

class Bucket;

// A file of tuned configs: its path (for messages) and its text.
struct TunedFile {
  std::string path;
  std::string text;
};

struct StoreOptions {
  // Files as embedded by the operator macro.
  std::vector<TunedFile> checked_in;
  // `<directory>/<op>/<hardware_id>.textproto`. Empty or missing: no overlay.
  std::string overlay_directory;
};

enum class StoreLayer { kCheckedIn, kOverlay };

enum class LookupSource {
  kExact,    // tuned for this shape on this hardware
  kBucket,   // verified for a range of shapes with this one, on this hardware
  kNearest,  // tuned for another shape or on another hardware
  kDefault,  // nothing fits
};

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
  // The backend, named as in a task: "" is the device kind's own. A config of
  // another backend, objective or number of devices is never an answer.
  absl::string_view backend;
  proto::LaunchMode launch_mode = proto::LAUNCH_MODE_UNSPECIFIED;
  absl::string_view objective;  // "": time
  int devices = 1;
  // nullptr accepts every config.
  const ConfigPredicate* is_valid = nullptr;
  // Whether a config that was tuned for another shape or on other hardware is
  // expected to beat the default of this request. A model answers (PriorPrefers
  // of the bound space), since lookups never measure. nullptr: nothing is
  // known, and the default is better more often than not.
  const ConfigPredicate* beats_default = nullptr;
};

// What the store is asked about `task`, which must outlive the request.
LookupRequest RequestOf(const proto::Task& task);

// Points into the store and lives as long as it does.
struct LookupResult {
  LookupSource source = LookupSource::kDefault;
  // nullptr: the default. Its source is kBucket if it was verified for a range,
  // else kDefault.
  const proto::Config* config = nullptr;
  const proto::TunedConfig* tuned = nullptr;  // provenance; nullptr if kDefault
  absl::string_view hardware_id;              // on which it was tuned
  // The winner was measured with another kernel (or the id is unknown).
  bool unverified = false;
  bool from_overlay = false;
  // The distance of the shapes; 0 for an equal one.
  // docs/reference/tuned_configs.md has the formula.
  double shape_distance = 0;
  // For people: what was substituted or refused, and why. Empty if all is well.
  std::string warning;
};

// Points into the store and lives as long as it does.
struct BestResult {
  // nullptr if no bench of all backends is known.
  const proto::BestBackend* best = nullptr;
  bool from_overlay = false;
  // Not the answer any more: a backend has another id than when they were
  // compared, is missing, or has come since. `why` says which.
  bool stale = false;
  std::string why;

  // The winner; nullptr if there is none or it is stale.
  const proto::BestBackend::Entry* winner() const {
    return best == nullptr || stale ? nullptr : &best->entries(0);
  }
};

class TunedConfigStore {
 public:
  // A file that can't be read is left out and said in warnings(); the others
  // are used, and of two entries of a key the later one. Fails only if a
  // checked-in file is broken: that is a fault of the source tree, which `bazel
  // test` shall see.
  static absl::StatusOr<TunedConfigStore> Load(const StoreOptions& options);

  TunedConfigStore();
  ~TunedConfigStore();
  TunedConfigStore(TunedConfigStore&&) noexcept;
  TunedConfigStore& operator=(TunedConfigStore&&) noexcept;

  // Exact; else the bucket with this shape, one of the request's kernel before
  // others; else, among entries without a bucket, the nearest shape (same
  // operator, device kind, backend, objective, devices, attributes, data types
  // and hardware), not farther away than kFarthest, whose config is a proven
  // winner there, valid here and expected to beat the default here; then the
  // same on the nearest other hardware; then kDefault. Thread-safe, lock-free;
  // an exact lookup takes under 100 ns once warm.
  LookupResult Lookup(const LookupRequest& request) const;

  // Returns whether one bucket, verified with the request's kernel, holds all
  // of `range`. The request's shape is not looked at.
  bool Covers(const LookupRequest& request, const Bucket& range) const;

  // Which backend was fastest for exactly this request (whose backend and
  // kernel_id are not looked at). `ids` says which backends can run here and
  // now, by name ("": the device kind's own), and their ids.
  BestResult FindBest(const LookupRequest& request,
                      const std::map<std::string, std::string>& ids) const;

  // All that lookups choose from, overlay over checked-in: one message per
  // operator, device kind and hardware, sorted. With a layer, the part that is
  // from there: a checked-in entry that the overlay replaces is in neither.
  std::vector<proto::TunedConfigs> Contents(
      absl::optional<StoreLayer> layer = absl::nullopt) const;

  // Files that were left out and why; entries that a later one of the same file
  // supersedes.
  const std::vector<std::string>& warnings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What was tuned for something farther away than this is not used, by its shape
// alone and with threads, cache and launch mode: the default is better then
// more often than not (docs/reference/tuned_configs.md has the figures).
inline constexpr double kFarthestShape = 1;
inline constexpr double kFarthest = 2;

// sum over dimensions of |log2(a / b)|; nullopt if the shapes differ in their
// dimensions' names, their attributes (a convolution of another stride is
// another computation, however near its sizes) or their data types.
absl::optional<double> ShapeDistance(const proto::Shape& a,
                                     const proto::Shape& b);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_STORE_H_
