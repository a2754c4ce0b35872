#ifndef OPTRAIL_TUNING_STORE_STORE_TEST_FIXTURE_H_
#define OPTRAIL_TUNING_STORE_STORE_TEST_FIXTURE_H_

// Entries, files and lookups of the tests of the store and of its files.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {

inline std::string FreshDirectory(const std::string& name) {
  static int counter = 0;
  const std::string path = absl::StrCat(
      ::testing::TempDir(), "/", name, "_", ++counter, "_",
      ::testing::UnitTest::GetInstance()->current_test_info()->name());
  EXPECT_TRUE(CreateDirectories(path).ok());
  return path;
}

inline proto::TunedConfig Tuned(const std::string& shape,
                                const std::string& config, int threads = 1) {
  proto::TunedConfig tuned;
  tuned.set_shape(shape);
  tuned.set_config(config);
  tuned.set_threads(threads);
  tuned.set_cache_mode(proto::HOT);
  tuned.set_kernel_id("k1");
  tuned.set_time_ns(100);
  return tuned;
}

inline TunedFile File(const std::string& hardware,
                      const std::vector<proto::TunedConfig>& entries) {
  proto::TunedConfigs configs;
  configs.set_operator_name("softmax");
  configs.set_hardware_id(hardware);
  configs.set_device_kind(proto::CPU);
  for (const proto::TunedConfig& tuned : entries) *configs.add_tuned() = tuned;
  return {hardware + ".textproto", FormatTunedConfigs(configs)};
}

inline TunedConfigStore LoadOrDie(const StoreOptions& options) {
  absl::StatusOr<TunedConfigStore> store = TunedConfigStore::Load(options);
  EXPECT_TRUE(store.ok()) << store.status();
  return std::move(store).value();
}

inline bool Always(const proto::Config&) { return true; }

// A lookup whose shape lives as long as it, and whose model expects every
// config to beat the default.
struct Query {
  explicit Query(const std::string& text, const std::string& hardware = "hw-a")
      : shape(*ParseShape(text)) {
    request.operator_name = "softmax";
    request.hardware_id = hardware_id = hardware;
    request.hardware_id = hardware_id;
    request.kernel_id = "k1";
    request.shape = &shape;
    request.beats_default = &always;
  }
  Query(const Query&) = delete;
  const ConfigPredicate always{Always};
  proto::Shape shape;
  std::string hardware_id;
  LookupRequest request;
};

inline std::string ConfigOf(const LookupResult& result) {
  return result.config == nullptr ? "none" : CanonicalText(*result.config);
}

inline proto::TunedConfig WithBucket(proto::TunedConfig tuned,
                                     const std::string& bucket) {
  tuned.set_bucket(bucket);
  return tuned;
}

// A merge leaves such a file when two branches promoted into it.
inline proto::BestBackend Best(const std::string& shape) {
  proto::BestBackend best;
  best.set_shape(shape);
  best.set_threads(1);
  best.set_cache_mode(proto::HOT);
  for (const char* backend : {"openblas", ""}) {
    proto::BestBackend::Entry* entry = best.add_entries();
    entry->set_backend(backend);
    entry->set_id(absl::StrCat("id-", backend));
    entry->set_time_ns(100 + 10 * best.entries_size());
  }
  best.set_run_id("20261121T000000Z-1");
  return best;
}

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_STORE_TEST_FIXTURE_H_
