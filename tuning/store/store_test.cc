#include "tuning/store/store.h"

#include <sys/stat.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/bucket.h"
#include "tuning/store/operator_folders.h"
#include "tuning/store/store_files.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string FreshDirectory(const std::string& name) {
  static int counter = 0;
  const std::string path = absl::StrCat(
      ::testing::TempDir(), "/", name, "_", ++counter, "_",
      ::testing::UnitTest::GetInstance()->current_test_info()->name());
  EXPECT_TRUE(CreateDirectories(path).ok());
  return path;
}

proto::TunedConfig Tuned(const std::string& shape, const std::string& config,
                         int threads = 1) {
  proto::TunedConfig tuned;
  tuned.set_shape(shape);
  tuned.set_config(config);
  tuned.set_threads(threads);
  tuned.set_cache_mode(proto::HOT);
  tuned.set_kernel_id("k1");
  tuned.set_time_ns(100);
  return tuned;
}

TunedFile File(const std::string& hardware,
               const std::vector<proto::TunedConfig>& entries) {
  proto::TunedConfigs configs;
  configs.set_operator_name("softmax");
  configs.set_hardware_id(hardware);
  configs.set_device_kind(proto::CPU);
  for (const proto::TunedConfig& tuned : entries) *configs.add_tuned() = tuned;
  return {hardware + ".textproto", FormatTunedConfigs(configs)};
}

TunedConfigStore LoadOrDie(const StoreOptions& options) {
  absl::StatusOr<TunedConfigStore> store = TunedConfigStore::Load(options);
  EXPECT_TRUE(store.ok()) << store.status();
  return std::move(store).value();
}

bool Always(const proto::Config&) { return true; }

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

std::string ConfigOf(const LookupResult& result) {
  return result.config == nullptr ? "none" : CanonicalText(*result.config);
}

proto::TunedConfig WithBucket(proto::TunedConfig tuned,
                              const std::string& bucket) {
  tuned.set_bucket(bucket);
  return tuned;
}

TEST(StoreTest, AConfigIsUsedInItsBucketAndNowhereElse) {
  StoreOptions options;
  proto::TunedConfig ties =
      WithBucket(Tuned("n=640/f32", "u=9"), "n=257..999/f32");
  ties.set_ties(true);
  options.checked_in = {
      File("hw-a", {WithBucket(Tuned("n=64/f32", "u=1"), "n=32..256/f32"),
                    WithBucket(Tuned("n=100/f32", "u=2"), "n=90..120/f32"),
                    Tuned("n=200/f32", "u=3"), ties})};
  const TunedConfigStore store = LoadOrDie(options);
  const auto find = [&](const std::string& shape) {
    Query query(shape);
    return store.Lookup(query.request);
  };
  for (const char* shape : {"n=32/f32", "n=89/f32", "n=256/f32"}) {
    const LookupResult found = find(shape);
    EXPECT_EQ(found.source, LookupSource::kBucket) << shape;
    EXPECT_EQ(ConfigOf(found), "u=1") << shape;
    EXPECT_EQ(found.warning,
              "using the config that was verified for n=32..256/f32");
  }
  // The nearer one of two, and what was tuned for the shape itself.
  EXPECT_EQ(ConfigOf(find("n=110/f32")), "u=2");
  EXPECT_EQ(ConfigOf(find("n=200/f32")), "u=3");
  EXPECT_EQ(find("n=200/f32").source, LookupSource::kExact);
  // Next to a bucket, and where the default was verified.
  EXPECT_EQ(find("n=31/f32").source, LookupSource::kDefault);
  const LookupResult by_default = find("n=300/f32");
  EXPECT_EQ(by_default.source, LookupSource::kBucket);
  EXPECT_EQ(by_default.config, nullptr);
  EXPECT_EQ(by_default.warning,
            "using the default that was verified for n=257..999/f32");

  Query other_hardware("n=89/f32", "hw-b"), threads("n=89/f32");
  threads.request.threads = 2;
  EXPECT_NE(store.Lookup(other_hardware.request).source, LookupSource::kBucket);
  EXPECT_NE(store.Lookup(threads.request).source, LookupSource::kBucket);
  Query invalid("n=89/f32");
  const auto refuses_one = [](const proto::Config& config) {
    return CanonicalText(config) != "u=1";
  };
  const ConfigPredicate is_valid(refuses_one);
  invalid.request.is_valid = &is_valid;
  EXPECT_NE(store.Lookup(invalid.request).source, LookupSource::kBucket);
}

TEST(StoreTest, ABucketOfTodaysKernelIsPreferred) {
  StoreOptions options;
  proto::TunedConfig former =
      WithBucket(Tuned("n=64/f32", "u=1"), "n=32..256/f32");
  former.set_kernel_id("k0");
  options.checked_in = {
      File("hw-a",
           {former, WithBucket(Tuned("n=200/f32", "u=2"), "n=60..256/f32")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query both("n=65/f32"), one("n=40/f32");
  EXPECT_EQ(ConfigOf(store.Lookup(both.request)), "u=2");
  EXPECT_FALSE(store.Lookup(both.request).unverified);
  EXPECT_EQ(ConfigOf(store.Lookup(one.request)), "u=1");
  EXPECT_TRUE(store.Lookup(one.request).unverified);
}

TEST(StoreTest, KnowsWhichRangesAreCovered) {
  StoreOptions options;
  proto::TunedConfig energy =
      WithBucket(Tuned("n=4096/f32", "u=1"), "n=2048..8192/f32");
  energy.set_objective("joules");
  options.checked_in = {File(
      "hw-a", {WithBucket(Tuned("n=64/f32", "u=1"), "n=32..256/f32"), energy,
               WithBucket(Tuned("n=300/f32", "u=1"), "n=257..512/f32")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query query("n=1/f32");
  const auto covers = [&](const char* range) {
    return store.Covers(query.request, *Bucket::Parse(range));
  };
  EXPECT_TRUE(covers("n=32..256/f32"));
  EXPECT_TRUE(covers("n=100/f32"));
  EXPECT_FALSE(covers("n=31..256/f32"));
  EXPECT_FALSE(covers("n=200..300/f32"));  // by two
  EXPECT_FALSE(covers("n=4096/f32"));      // for another objective
  EXPECT_FALSE(covers("n=100/bf16"));
  query.request.kernel_id = "k2";
  EXPECT_FALSE(covers("n=100/f32"));
  query.request.kernel_id = "k1";
  EXPECT_TRUE(covers("n=100/f32"));
  query.request.threads = 2;
  EXPECT_FALSE(covers("n=100/f32"));
}

TEST(StoreTest, ABucketWithoutItsShapeIsRefused) {
  for (const char* bucket : {"n=65..256/f32", "n=9..4/f32", "n=32..256/f16"}) {
    const TunedFile file =
        File("hw-a", {WithBucket(Tuned("n=64/f32", "u=1"), bucket)});
    const auto configs = ParseTunedConfigs(file.text, file.path);
    ASSERT_FALSE(configs.ok()) << bucket;
    EXPECT_THAT(std::string(configs.status().message()), HasSubstr(bucket));
  }
}

TEST(StoreTest, FindsTheExactConfig) {
  StoreOptions options;
  options.checked_in = {
      File("hw-a", {Tuned("n=64/f32", "u=1"), Tuned("n=64/f32", "u=2", 4),
                    Tuned("n=64/f16", "u=3")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query query("n=64/f32");
  const LookupResult one = store.Lookup(query.request);
  EXPECT_EQ(one.source, LookupSource::kExact);
  EXPECT_EQ(ConfigOf(one), "u=1");
  EXPECT_FALSE(one.unverified);
  EXPECT_EQ(one.warning, "");
  query.request.threads = 4;
  EXPECT_EQ(ConfigOf(store.Lookup(query.request)), "u=2");
  Query half("n=64/f16");
  EXPECT_EQ(ConfigOf(store.Lookup(half.request)), "u=3");
}

TEST(StoreTest, OverlayWins) {
  const std::string overlay = FreshDirectory("overlay");
  ASSERT_TRUE(WriteOverlay(overlay, "softmax", "hw-a", proto::CPU,
                           Tuned("n=64/f32", "u=8"))
                  .ok());
  StoreOptions options;
  options.checked_in = {
      File("hw-a", {Tuned("n=64/f32", "u=1"), Tuned("n=65/f32", "u=2")})};
  options.overlay_directory = overlay;
  const TunedConfigStore store = LoadOrDie(options);
  Query query("n=64/f32");
  const LookupResult found = store.Lookup(query.request);
  EXPECT_EQ(ConfigOf(found), "u=8");
  EXPECT_TRUE(found.from_overlay);
  Query other("n=65/f32");
  EXPECT_FALSE(store.Lookup(other.request).from_overlay);
  ASSERT_THAT(store.Contents(), SizeIs(1));
  EXPECT_EQ(store.Contents()[0].tuned_size(), 2);
  // Each entry is of the layer that answers; the replaced one is of none.
  const auto of_overlay = store.Contents(StoreLayer::kOverlay);
  ASSERT_THAT(of_overlay, SizeIs(1));
  ASSERT_EQ(of_overlay[0].tuned_size(), 1);
  EXPECT_EQ(of_overlay[0].tuned(0).config(), "u=8");
  const auto checked_in = store.Contents(StoreLayer::kCheckedIn);
  ASSERT_THAT(checked_in, SizeIs(1));
  ASSERT_EQ(checked_in[0].tuned_size(), 1);
  EXPECT_EQ(checked_in[0].tuned(0).config(), "u=2");
}

TEST(StoreFilesTest, FindsWhatTheTreeGotSinceTheBuild) {
  const auto file = [](const std::string& hardware,
                       const std::vector<proto::TunedConfig>& entries) {
    proto::TunedConfigs configs;
    configs.set_operator_name("softmax");
    configs.set_hardware_id(hardware);
    configs.set_device_kind(proto::CPU);
    for (const proto::TunedConfig& entry : entries) {
      *configs.add_tuned() = entry;
    }
    return configs;
  };
  const auto built_in =
      file("hw-a", {Tuned("n=64/f32", "u=1"), Tuned("n=65/f32", "u=2")});
  EXPECT_THAT(EntriesMissingFrom({built_in}, {built_in}), SizeIs(0));
  const auto missing = EntriesMissingFrom(
      {built_in},
      {file("hw-a", {Tuned("n=64/f32", "u=1"), Tuned("n=65/f32", "u=3")}),
       file("hw-b", {Tuned("n=66/f32", "u=4")})});
  ASSERT_THAT(missing, SizeIs(2));
  ASSERT_EQ(missing[0].tuned_size(), 1);
  EXPECT_EQ(missing[0].tuned(0).config(), "u=3");
  EXPECT_EQ(missing[1].hardware_id(), "hw-b");
  EXPECT_EQ(missing[1].tuned_size(), 1);
}

TEST(StoreTest, AnotherKernelIsUnverified) {
  StoreOptions options;
  options.checked_in = {File("hw-a", {Tuned("n=64/f32", "u=1")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query query("n=64/f32");
  query.request.kernel_id = "k2";
  EXPECT_TRUE(store.Lookup(query.request).unverified);
  query.request.kernel_id = "";
  EXPECT_TRUE(store.Lookup(query.request).unverified);
}

TEST(StoreTest, FallsBackToTheNearestShapeThatIsValid) {
  StoreOptions options;
  options.checked_in = {File(
      "hw-a", {Tuned("m=128,n=64/f32", "u=1"), Tuned("m=256,n=64/f32", "u=2"),
               Tuned("m=120,n=64/f16", "u=3")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query query("m=192,n=64/f32");
  const LookupResult nearest = store.Lookup(query.request);
  EXPECT_EQ(nearest.source, LookupSource::kNearest);
  EXPECT_EQ(ConfigOf(nearest), "u=2");
  EXPECT_NEAR(nearest.shape_distance, std::log2(256.0 / 192), 1e-12);
  EXPECT_THAT(nearest.warning,
              HasSubstr("using the config tuned for m=256,n=64/f32"));

  const auto not_two = [](const proto::Config& config) {
    return config.set(0).int_() != 2;
  };
  const ConfigPredicate predicate(not_two);
  query.request.is_valid = &predicate;
  EXPECT_EQ(ConfigOf(store.Lookup(query.request)), "u=1");
}

TEST(StoreTest, WhatIsFarAwayIsNotUsed) {
  StoreOptions options;
  options.checked_in = {File("hw-a", {Tuned("m=64,n=64/f32", "u=1")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query near("m=64,n=128/f32");
  EXPECT_EQ(ConfigOf(store.Lookup(near.request)), "u=1");
  near.request.threads = 2;
  EXPECT_EQ(ConfigOf(store.Lookup(near.request)), "u=1");
  // Nor what was measured otherwise in several ways.
  near.request.cache_mode = proto::COLD;
  EXPECT_EQ(ConfigOf(store.Lookup(near.request)), "none");

  Query far("m=64,n=129/f32");
  const LookupResult found = store.Lookup(far.request);
  EXPECT_EQ(found.source, LookupSource::kDefault);
  EXPECT_THAT(found.warning, HasSubstr("(the next one, of m=64,n=64/f32, is "
                                       "too far); the default is used"));
}

TEST(StoreTest, ANeighbourAnswersOnlyWhereItIsExpectedToBeatTheDefault) {
  StoreOptions options;
  proto::TunedConfig ties = Tuned("m=80,n=64/f32", "u=3");
  ties.set_ties(true);
  options.checked_in = {File("hw-a", {Tuned("m=64,n=64/f32", "u=1"), ties}),
                        File("hw-b", {Tuned("m=96,n=64/f32", "u=2")})};
  const TunedConfigStore store = LoadOrDie(options);
  // The nearest one is a default that stayed.
  Query query("m=78,n=64/f32");
  EXPECT_EQ(ConfigOf(store.Lookup(query.request)), "u=1");

  const auto is_two = [](const proto::Config& config) {
    return config.set(0).int_() == 2;
  };
  const ConfigPredicate only_two(is_two);
  query.request.beats_default = &only_two;
  EXPECT_EQ(ConfigOf(store.Lookup(query.request)), "u=2");

  // Without a model nothing is known; and it is said.
  query.request.beats_default = nullptr;
  const LookupResult found = store.Lookup(query.request);
  EXPECT_EQ(found.source, LookupSource::kDefault);
  EXPECT_THAT(found.warning,
              HasSubstr("(the nearest, of m=80,n=64/f32, is not expected to "
                        "beat the default); the default is used"));
  Query own("m=64,n=64/f32");
  own.request.beats_default = nullptr;
  EXPECT_EQ(ConfigOf(store.Lookup(own.request)), "u=1");
  own.request.threads = 2;
  EXPECT_EQ(ConfigOf(store.Lookup(own.request)), "none");
}

TEST(StoreTest, AnInvalidExactConfigFallsBackAndSaysSo) {
  StoreOptions options;
  options.checked_in = {
      File("hw-a", {Tuned("n=64/f32", "u=1"), Tuned("n=128/f32", "u=2")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query query("n=64/f32");
  int asked = 0;
  const auto is_two = [&](const proto::Config& config) {
    ++asked;
    return config.set(0).int_() == 2;
  };
  const ConfigPredicate predicate(is_two);
  query.request.is_valid = &predicate;
  const LookupResult found = store.Lookup(query.request);
  EXPECT_EQ(found.source, LookupSource::kNearest);
  EXPECT_EQ(ConfigOf(found), "u=2");
  EXPECT_THAT(found.warning, HasSubstr("(u=1) is not valid here"));
  // The exact one's answer is remembered.
  asked = 0;
  store.Lookup(query.request);
  EXPECT_EQ(asked, 1);
}

TEST(StoreTest, FallsBackToSimilarHardwareAndNamesIt) {
  StoreOptions options;
  options.checked_in = {File("intel-xeon-2c", {Tuned("n=64/f32", "u=1")}),
                        File("amd-epyc-zen4-4c", {Tuned("n=128/f32", "u=2")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query query("n=64/f32", "amd-epyc-zen4-2c");
  const LookupResult found = store.Lookup(query.request);
  EXPECT_EQ(found.source, LookupSource::kNearest);
  EXPECT_EQ(ConfigOf(found), "u=2");
  EXPECT_EQ(found.hardware_id, "amd-epyc-zen4-4c");
  EXPECT_THAT(found.warning, HasSubstr("on other hardware, amd-epyc-zen4-4c"));
}

TEST(StoreTest, WhatWasTunedOnAnotherMakersHardwareIsNotUsed) {
  StoreOptions options;
  options.checked_in = {File("intel-xeon-2c", {Tuned("n=64/f32", "u=1")}),
                        File("intel-xeon-4c", {Tuned("n=64/f32", "u=2", 4)})};
  const TunedConfigStore store = LoadOrDie(options);
  Query query("n=64/f32", "amd-epyc-zen5-2c");
  const LookupResult found = store.Lookup(query.request);
  EXPECT_EQ(ConfigOf(found), "none");
  EXPECT_THAT(found.warning,
              AllOf(HasSubstr("no tuned config fits"),
                    HasSubstr("those of intel-xeon-2c are of another maker's "
                              "hardware"),
                    HasSubstr("the default is used")));
  Query neighbour("n=64/f32", "intel-core-2c");
  EXPECT_EQ(ConfigOf(store.Lookup(neighbour.request)), "u=1");
}

TEST(StoreTest, NothingThatFitsIsTheDefault) {
  StoreOptions options;
  options.checked_in = {
      File("hw-a", {Tuned("n=64/f16", "u=1"), Tuned("m=64/f32", "u=1")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query query("n=64/f32");
  const LookupResult found = store.Lookup(query.request);
  EXPECT_EQ(found.source, LookupSource::kDefault);
  EXPECT_EQ(found.config, nullptr);
  EXPECT_THAT(found.warning, HasSubstr("the default is used"));
  query.request.device_kind = proto::CUDA;
  EXPECT_EQ(store.Lookup(query.request).source, LookupSource::kDefault);
  EXPECT_EQ(TunedConfigStore().Lookup(query.request).source,
            LookupSource::kDefault);
}

TEST(StoreTest, ABrokenOverlayFileIsLeftOutLoudly) {
  const std::string overlay = FreshDirectory("overlay");
  ASSERT_TRUE(WriteOverlay(overlay, "softmax", "hw-a", proto::CPU,
                           Tuned("n=64/f32", "u=8"))
                  .ok());
  ASSERT_TRUE(
      WriteFileAtomically(JoinPath(overlay, "softmax", "hw-b.textproto"),
                          "operator_name: 'softmax'\nhardware {")
          .ok());
  StoreOptions options;
  options.overlay_directory = overlay;
  const TunedConfigStore store = LoadOrDie(options);
  ASSERT_THAT(store.warnings(), SizeIs(1));
  EXPECT_THAT(store.warnings()[0], HasSubstr("hw-b.textproto:2:"));
  Query query("n=64/f32");
  EXPECT_EQ(store.Lookup(query.request).source, LookupSource::kExact);
  // Whoever changes files must not step over it.
  EXPECT_FALSE(
      DiffStore(*OperatorFolders::Find(FreshDirectory("tree")), overlay).ok());
}

TEST(StoreTest, ABrokenCheckedInFileIsAnError) {
  StoreOptions options;
  options.checked_in = {{"ops/x/tuned/hw.textproto", "tuned { shape: 'n=0' }"}};
  EXPECT_FALSE(TunedConfigStore::Load(options).ok());
}

TEST(StoreFilesTest, ErrorsNameLineAndField) {
  const auto error = [](const std::string& entry) {
    const auto configs = ParseTunedConfigs(
        absl::StrCat("operator_name: 'softmax'\nhardware_id: 'hw'\n"
                     "device_kind: CPU\n",
                     entry),
        "hw.textproto");
    return std::string(configs.status().message());
  };
  const std::string good =
      "tuned { shape: 'n=1/f32' config: 'u=1' threads: 1 cache_mode: HOT }\n";
  EXPECT_EQ(error(good), "");
  EXPECT_THAT(
      error(good + "tuned { shape: 'n=1/f32' config: 'u=2' threads: 1 "
                   "cache_mode: HOT session_id: '20261122T231921Z-d2b6' }\n"),
      HasSubstr("hw.textproto:5:1: shape n=1/f32, threads 1, hot has two "
                "entries, the first in line 4, and nothing tells which is "
                "newer: remove one"));
  EXPECT_THAT(error("tuned { shape: 'n=x/f32' config: 'u=1' threads: 1 }"),
              HasSubstr("hw.textproto:4:9: dimension \"n\""));
  EXPECT_THAT(error("tuned { shape: 'n=1/f32' config: 'u' threads: 1 }"),
              HasSubstr("expected name=value"));
  EXPECT_THAT(error("tuned { shape: 'n=1/f32' threads: 0 }"),
              HasSubstr("threads is 0"));
  EXPECT_THAT(error("tuned { shape: 'n=1/f32' threads: 1 }"),
              HasSubstr("cache_mode is missing"));
  EXPECT_THAT(std::string(ParseTunedConfigs("operator_name: '../../etc'", "f")
                              .status()
                              .message()),
              HasSubstr("operator_name is \"../../etc\""));
}

// A merge leaves such a file when two branches promoted into it.
TEST(StoreFilesTest, OfTwoEntriesOfAKeyTheLaterSessionWins) {
  const std::string head =
      "operator_name: 'softmax'\nhardware_id: 'hw'\ndevice_kind: CPU\n";
  const auto entry = [](const std::string& u, const std::string& session) {
    return absl::StrCat("tuned { shape: 'n=1/f32' config: 'u=", u,
                        "' threads: 1 cache_mode: HOT session_id: '", session,
                        "' }\n");
  };
  const std::string old = entry("1", "20261122T231921Z-aaaa");
  const std::string late = entry("2", "20261123T001921Z-1111");
  const std::string later = entry("3", "20261123T011921Z-0000");
  for (const std::string& text :
       {old + late + later, later + old + late, late + later + old}) {
    std::vector<std::string> mended;
    const auto configs = ParseTunedConfigs(head + text, "f", &mended);
    ASSERT_TRUE(configs.ok()) << configs.status();
    ASSERT_EQ(configs->tuned_size(), 1);
    EXPECT_EQ(configs->tuned(0).config(), "u=3");
    EXPECT_THAT(mended, SizeIs(2));
    EXPECT_THAT(mended[0], HasSubstr("f:5:1: shape n=1/f32"));
    EXPECT_THAT(mended[0], HasSubstr("`optrail store mend`"));
  }
  // The same twice is no contradiction; a session that says two things is.
  EXPECT_EQ(ParseTunedConfigs(head + old + old, "f")->tuned_size(), 1);
  EXPECT_FALSE(
      ParseTunedConfigs(head + old + entry("2", "20261122T231921Z-aaaa"), "f")
          .ok());

  // Commands run, and say it.
  StoreOptions options;
  options.checked_in = {{"f", head + old + late}};
  const auto store = TunedConfigStore::Load(options);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(store->warnings(), SizeIs(1));

  const std::string tree = FreshDirectory("mended_tree");
  const std::string path = JoinPath(tree, "x/tuned/hw.textproto");
  ASSERT_TRUE(CreateDirectories(DirectoryOf(path)).ok());
  ASSERT_TRUE(WriteFileAtomically(JoinPath(tree, "x/BUILD"),
                                  "operator(name = \"softmax\")")
                  .ok());
  ASSERT_TRUE(WriteFileAtomically(path, head + old + later).ok());
  const auto folders = OperatorFolders::Find(tree);
  const std::string overlay = FreshDirectory("mended_overlay");
  const std::string in_overlay = JoinPath(overlay, "softmax/hw.textproto");
  ASSERT_TRUE(CreateDirectories(DirectoryOf(in_overlay)).ok());
  ASSERT_TRUE(WriteFileAtomically(in_overlay, head + later + old).ok());
  EXPECT_THAT(*MendStore(*folders, overlay), SizeIs(2));
  EXPECT_THAT(*MendStore(*folders, overlay), SizeIs(0));
  for (const std::string& mended : {path, in_overlay}) {
    EXPECT_THAT(*ReadFile(mended), HasSubstr("u=3"));
    EXPECT_THAT(*ReadFile(mended), ::testing::Not(HasSubstr("u=1")));
  }
}

TEST(StoreFilesTest, AnIdThatIsNoTimeOrdersNothing) {
  const std::string head =
      "operator_name: 'softmax'\nhardware_id: 'hw'\ndevice_kind: CPU\n"
      "tuned { shape: 'n=1/f32' config: 'u=1' threads: 1 cache_mode: HOT "
      "session_id: '20261122T231921Z-aaaa' }\n";
  for (const char* id : {"", "zzz", "by hand", "20261123", "2026-11-23T00:19Z",
                         "20261123T00192Z-aaaa", "20261123T001921Z"}) {
    const auto configs = ParseTunedConfigs(
        absl::StrCat(head,
                     "tuned { shape: 'n=1/f32' config: 'u=2' threads: 1 "
                     "cache_mode: HOT session_id: '",
                     id, "' }"),
        "f");
    EXPECT_THAT(std::string(configs.status().message()),
                HasSubstr("nothing tells which is newer"))
        << id;
  }
}

TEST(StoreFilesTest, OnlyFilesAreRead) {
  const std::string overlay = FreshDirectory("overlay");
  const std::string path = JoinPath(overlay, "softmax/hw.textproto");
  ASSERT_TRUE(CreateDirectories(DirectoryOf(path)).ok());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadOverlay(overlay).status().message()),
              HasSubstr("hw.textproto: it is no regular file"));
  StoreOptions options;
  options.overlay_directory = overlay;
  EXPECT_THAT(LoadOrDie(options).warnings(), SizeIs(1));
}

TEST(StoreFilesTest, WhatFailsNamesWhatWasWritten) {
  const std::string overlay = FreshDirectory("overlay");
  const std::string root = FreshDirectory("tree");
  for (const char* op : {"gelu", "softmax"}) {
    ASSERT_TRUE(CreateDirectories(JoinPath(root, op)).ok());
    ASSERT_TRUE(
        WriteFileAtomically(JoinPath(root, op, "BUILD"),
                            absl::StrCat("operator(name = \"", op, "\")"))
            .ok());
    ASSERT_TRUE(
        WriteOverlay(overlay, op, "hw", proto::CPU, Tuned("n=1/f32", "u=1"))
            .ok());
  }
  // A file where the folder would be.
  const std::string in_the_way = JoinPath(root, "softmax/tuned");
  ASSERT_TRUE(WriteFileAtomically(in_the_way, "").ok());
  const auto tree = OperatorFolders::Find(root);
  const auto all = [](absl::string_view) { return true; };
  const auto promoted = PromoteOverlay(*tree, overlay, all);
  EXPECT_THAT(std::string(promoted.status().message()),
              AllOf(HasSubstr(in_the_way),
                    HasSubstr("gelu/tuned/hw.textproto; next:")));
  ASSERT_TRUE(RemoveFile(in_the_way).ok());
  EXPECT_THAT(*PromoteOverlay(*tree, overlay, all), SizeIs(1));
  EXPECT_THAT(*ReadOverlay(overlay), IsEmpty());
}

TEST(StoreFilesTest, WritesSortedAndReplacesTheSameEntry) {
  const std::string overlay = FreshDirectory("overlay");
  for (const char* shape : {"n=9/f32", "n=1/f32", "n=9/f32"}) {
    ASSERT_TRUE(WriteOverlay(overlay, "softmax", "hw-a", proto::CPU,
                             Tuned(shape, "u=1"))
                    .ok());
  }
  const auto contents = ReadOverlay(overlay);
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_THAT(*contents, SizeIs(1));
  ASSERT_EQ((*contents)[0].tuned_size(), 2);
  EXPECT_EQ((*contents)[0].tuned(0).shape(), "n=1/f32");
  const std::string text =
      *ReadFile(JoinPath(overlay, "softmax", "hw-a.textproto"));
  EXPECT_EQ(FormatTunedConfigs(*ParseTunedConfigs(text, "f")), text);
}

TEST(StoreFilesTest, RefusesToWriteWhatItCouldNotRead) {
  const std::string overlay = FreshDirectory("overlay");
  EXPECT_FALSE(WriteOverlay(overlay, "../evil", "hw", proto::CPU,
                            Tuned("n=1/f32", "u=1"))
                   .ok());
  EXPECT_FALSE(
      WriteOverlay(overlay, "softmax", "hw", proto::CPU, Tuned("n", "u=1"))
          .ok());
  EXPECT_THAT(*ReadOverlay(overlay), IsEmpty());
}

TEST(StoreFilesTest, ConcurrentWritersKeepAllEntries) {
  const std::string overlay = FreshDirectory("overlay");
  constexpr int kWriters = 4;
  constexpr int kEntries = 8;
  std::vector<std::thread> writers;
  std::vector<absl::Status> results(kWriters);
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < kEntries; ++i) {
        results[w].Update(WriteOverlay(
            overlay, "softmax", "hw-a", proto::CPU,
            Tuned(absl::StrCat("n=", 1 + w * kEntries + i, "/f32"), "u=1")));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ((*ReadOverlay(overlay))[0].tuned_size(), kWriters * kEntries);
}

TEST(StoreFilesTest, DiffAndPromoteMoveEntries) {
  const std::string overlay = FreshDirectory("overlay");
  const std::string root = FreshDirectory("tree");
  // Named as it pleases.
  ASSERT_TRUE(CreateDirectories(JoinPath(root, "kernels/rows")).ok());
  ASSERT_TRUE(WriteFileAtomically(JoinPath(root, "kernels/rows/BUILD"),
                                  "operator(name = \"softmax\")")
                  .ok());
  const OperatorFolders tree = *OperatorFolders::Find(root);
  const auto write = [&](const std::string& shape, const std::string& config) {
    ASSERT_TRUE(WriteOverlay(overlay, "softmax", "hw-a", proto::CPU,
                             Tuned(shape, config))
                    .ok());
  };
  const auto all = [](absl::string_view) { return true; };
  write("n=1/f32", "u=1");
  write("n=2/f32", "u=2");
  const std::string path = JoinPath(root, "kernels/rows/tuned/hw-a.textproto");
  EXPECT_THAT(*PromoteOverlay(tree, overlay, all), ElementsAre(path));
  EXPECT_THAT(*ReadOverlay(overlay), IsEmpty());
  EXPECT_THAT(*DiffStore(tree, overlay), IsEmpty());

  write("n=1/f32", "u=1");  // equal to the checked-in one
  write("n=2/f32", "u=3");
  write("n=3/f32", "u=4");
  const auto differences = DiffStore(tree, overlay);
  ASSERT_TRUE(differences.ok()) << differences.status();
  ASSERT_THAT(*differences, SizeIs(2));
  EXPECT_FALSE((*differences)[0].is_new);
  EXPECT_THAT(
      FormatDifference((*differences)[0]),
      AllOf(HasSubstr("- config: \"u=2\""), HasSubstr("+ config: \"u=3\"")));
  EXPECT_TRUE((*differences)[1].is_new);

  EXPECT_THAT(
      *PromoteOverlay(tree, overlay, [](absl::string_view) { return false; }),
      IsEmpty());
  EXPECT_EQ((*ReadOverlay(overlay))[0].tuned_size(), 3);
  EXPECT_TRUE(PromoteOverlay(tree, overlay, all).ok());
  EXPECT_THAT(*ReadOverlay(overlay), IsEmpty());
  ASSERT_THAT(*ReadTree(tree), SizeIs(1));
  EXPECT_EQ((*ReadTree(tree))[0].tuned_size(), 3);
}

TEST(StoreFilesTest, NothingMovesWhereAnOperatorHasNoFolder) {
  const std::string overlay = FreshDirectory("overlay");
  ASSERT_TRUE(WriteOverlay(overlay, "softmax", "hw-a", proto::CPU,
                           Tuned("n=1/f32", "u=1"))
                  .ok());
  const OperatorFolders none = *OperatorFolders::Find(FreshDirectory("tree"));
  EXPECT_THAT(*DiffStore(none, overlay), SizeIs(1));
  EXPECT_TRUE(
      absl::IsNotFound(PromoteOverlay(none, overlay, [](absl::string_view) {
                         return true;
                       }).status()));
  EXPECT_THAT(*ReadOverlay(overlay), SizeIs(1));
}

proto::BestBackend Best(const std::string& shape) {
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

TEST(StoreTest, BackendsObjectivesAndDevicesAreEntriesOfTheirOwn) {
  const std::string overlay = FreshDirectory("overlay");
  proto::TunedConfig blas = Tuned("n=64/f32", "u=2");
  blas.set_backend("openblas");
  proto::TunedConfig joules = Tuned("n=64/f32", "u=3");
  joules.set_objective("joules");
  proto::TunedConfig graph = Tuned("n=64/f32", "u=4");
  graph.set_launch_mode(proto::GRAPH);
  proto::TunedConfig two = Tuned("n=64/f32", "u=5");
  two.set_devices(2);
  // What stands for itself is not written.
  proto::TunedConfig own = Tuned("n=64/f32", "u=1");
  own.set_backend("cpu");
  own.set_objective("time");
  own.set_devices(1);
  for (const auto& tuned : {blas, joules, graph, two, own}) {
    ASSERT_TRUE(
        WriteOverlay(overlay, "softmax", "hw-a", proto::CPU, tuned).ok());
  }
  const std::string text =
      *ReadFile(JoinPath(overlay, "softmax", "hw-a.textproto"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("\"cpu\"")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("\"time\"")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("devices: 1")));
  StoreOptions options;
  options.overlay_directory = overlay;
  const TunedConfigStore store = LoadOrDie(options);
  const auto lookup = [&](absl::string_view backend,
                          absl::string_view objective, proto::LaunchMode mode,
                          int devices) {
    Query query("n=64/f32");
    query.request.backend = backend;
    query.request.objective = objective;
    query.request.launch_mode = mode;
    query.request.devices = devices;
    const LookupResult found = store.Lookup(query.request);
    const char* source = found.source == LookupSource::kExact     ? "exact "
                         : found.source == LookupSource::kNearest ? "nearest "
                                                                  : "default ";
    return absl::StrCat(source, ConfigOf(found));
  };
  const auto none = proto::LAUNCH_MODE_UNSPECIFIED;
  EXPECT_EQ(lookup("", "", none, 1), "exact u=1");
  EXPECT_EQ(lookup("", "time", none, 0), "exact u=1");
  EXPECT_EQ(lookup("openblas", "", none, 1), "exact u=2");
  EXPECT_EQ(lookup("", "joules", none, 1), "exact u=3");
  EXPECT_EQ(lookup("", "", proto::GRAPH, 1), "exact u=4");
  EXPECT_EQ(lookup("", "", none, 2), "exact u=5");
  // Never another's in its place.
  EXPECT_EQ(lookup("onednn", "", none, 1), "default none");
  EXPECT_EQ(lookup("openblas", "joules", none, 1), "default none");
  EXPECT_EQ(lookup("", "", none, 4), "default none");
  // The same call launched otherwise is near, and said.
  EXPECT_EQ(lookup("openblas", "", proto::GRAPH, 1), "nearest u=2");
}

TEST(StoreTest, OtherAttributesAreNeverNear) {
  StoreOptions options;
  options.checked_in = {
      File("hw-a", {Tuned("n=64/stride=1/f32", "u=1"), Tuned("n=64/f32", "u=2"),
                    Tuned("n=128/stride=2/f32", "u=3")})};
  const TunedConfigStore store = LoadOrDie(options);
  Query two("n=64/stride=2/f32");
  EXPECT_EQ(ConfigOf(store.Lookup(two.request)), "u=3");
  Query one("n=64/stride=1/f32");
  EXPECT_EQ(store.Lookup(one.request).source, LookupSource::kExact);
  Query three("n=64/stride=3/f32");
  EXPECT_EQ(store.Lookup(three.request).source, LookupSource::kDefault);
}

TEST(StoreTest, BestIsAnsweredUntilAnIdChanges) {
  const std::string overlay = FreshDirectory("overlay");
  ASSERT_TRUE(
      WriteOverlay(overlay, "softmax", "hw-a", proto::CPU, Best("n=64/f32"))
          .ok());
  StoreOptions options;
  options.overlay_directory = overlay;
  const TunedConfigStore store = LoadOrDie(options);
  Query query("n=64/f32");
  const std::map<std::string, std::string> ids = {{"", "id-"},
                                                  {"openblas", "id-openblas"}};
  const BestResult found = store.FindBest(query.request, ids);
  ASSERT_NE(found.winner(), nullptr) << found.why;
  EXPECT_EQ(found.winner()->backend(), "openblas");
  EXPECT_TRUE(found.from_overlay);
  EXPECT_EQ(store.Contents()[0].best_size(), 1);

  const auto why = [&](const std::map<std::string, std::string>& now) {
    const BestResult result = store.FindBest(query.request, now);
    EXPECT_EQ(result.winner(), nullptr);
    EXPECT_TRUE(result.stale);
    return result.why;
  };
  EXPECT_THAT(why({{"", "id-"}, {"openblas", "0.3.22"}}),
              HasSubstr("openblas was id-openblas"));
  EXPECT_THAT(why({{"", "id-"}}), HasSubstr("openblas is not here now"));
  EXPECT_THAT(why({{"", "new"}, {"openblas", "id-openblas"}}),
              HasSubstr("cpu was id-"));
  auto more = ids;
  more["onednn"] = "3.1";
  EXPECT_THAT(why(more), HasSubstr("onednn was not among"));

  query.request.threads = 2;
  EXPECT_EQ(store.FindBest(query.request, ids).best, nullptr);
  EXPECT_EQ(TunedConfigStore().FindBest(query.request, ids).best, nullptr);
}

TEST(StoreFilesTest, BestEntriesAreCheckedSortedAndPromoted) {
  const auto error = [](proto::BestBackend best) {
    return std::string(WriteOverlay(FreshDirectory("overlay"), "softmax", "hw",
                                    proto::CPU, best)
                           .message());
  };
  proto::BestBackend best = Best("n=1/f32");
  EXPECT_EQ(error(best), "");
  best.mutable_entries(1)->set_time_ns(1);
  EXPECT_THAT(error(best), HasSubstr("best first"));
  best = Best("n=1/f32");
  best.mutable_entries(1)->set_backend("openblas");
  EXPECT_THAT(error(best), HasSubstr("occurs twice"));
  best = Best("n=1/f32");
  best.mutable_entries(0)->clear_id();
  EXPECT_THAT(error(best), HasSubstr("id is missing"));
  best.clear_entries();
  EXPECT_THAT(error(best), HasSubstr("without entries"));
  best = Best("n=1/f32");
  best.mutable_entries(0)->set_backend("all");
  EXPECT_THAT(error(best), HasSubstr("neither best nor all"));

  const std::string overlay = FreshDirectory("overlay");
  for (const char* shape : {"n=9/f32", "n=1/f32", "n=9/f32"}) {
    ASSERT_TRUE(
        WriteOverlay(overlay, "softmax", "hw-a", proto::CPU, Best(shape)).ok());
  }
  EXPECT_EQ((*ReadOverlay(overlay))[0].best(0).shape(), "n=1/f32");
  const std::string root = FreshDirectory("tree");
  ASSERT_TRUE(WriteFileAtomically(JoinPath(root, "BUILD"),
                                  "operator(name = \"softmax\")")
                  .ok());
  const OperatorFolders tree = *OperatorFolders::Find(root);
  const auto differences = DiffStore(tree, overlay);
  ASSERT_THAT(*differences, SizeIs(2));
  EXPECT_THAT(FormatDifference((*differences)[0]),
              HasSubstr("best backend, shape n=1/f32, threads 1, hot\n+ "));
  EXPECT_TRUE(PromoteOverlay(tree, overlay, [](absl::string_view) {
                return true;
              }).ok());
  EXPECT_THAT(*ReadOverlay(overlay), IsEmpty());
  EXPECT_EQ((*ReadTree(tree))[0].best_size(), 2);
}

TEST(StoreFilesTest, ADifferenceSaysWhetherResultsChange) {
  StoreDifference difference;
  difference.overlay.set_config("u=2");
  const auto says = [&](const char* before, const char* by_default,
                        const char* after) {
    difference.checked_in.set_numerics(before);
    difference.overlay.set_default_numerics(by_default);
    difference.overlay.set_numerics(after);
    return ChangesNumerics(difference);
  };
  EXPECT_EQ(says("aa", "bb", "aa"), false);
  EXPECT_EQ(says("aa", "bb", "bb"), true);
  EXPECT_EQ(says("", "bb", "bb"), absl::nullopt);
  EXPECT_EQ(says("aa", "bb", ""), absl::nullopt);
  difference.checked_in.set_config("u=1");
  difference.overlay.set_config("u=1");
  difference.overlay.set_kernel_id("k2");
  EXPECT_EQ(says("", "", ""), absl::nullopt);
  difference.overlay.clear_kernel_id();
  EXPECT_EQ(says("", "", ""), false);  // the same config of the same kernel
  difference.is_new = true;            // the default ran before
  EXPECT_EQ(says("", "", ""), absl::nullopt);
  difference.overlay.set_ties(true);
  EXPECT_EQ(says("", "", ""), false);
  difference.overlay.set_ties(false);
  EXPECT_EQ(says("", "bb", "bb"), false);
  EXPECT_EQ(says("", "bb", "cc"), true);
  EXPECT_THAT(FormatDifference(difference), HasSubstr("get other bits"));
  // Whether a row keeps its bits is part of it, as far as both know.
  EXPECT_EQ(says("", "bb, batch-invariant", "bb"), false);
  EXPECT_EQ(says("", "bb, batch-dependent", "bb, batch-invariant"), false);
  EXPECT_EQ(says("", "bb, batch-invariant", "bb, batch-dependent"), true);
  EXPECT_THAT(FormatDifference(difference), HasSubstr("number of rows"));
  difference.is_best = true;
  EXPECT_EQ(says("", "bb", "cc"), absl::nullopt);
}

TEST(StoreFilesTest, AFileMustSayWhatItsPathSays) {
  const std::string overlay = FreshDirectory("overlay");
  ASSERT_TRUE(CreateDirectories(JoinPath(overlay, "matmul")).ok());
  ASSERT_TRUE(WriteFileAtomically(JoinPath(overlay, "matmul", "hw-a.textproto"),
                                  File("hw-a", {Tuned("n=1/f32", "u=1")}).text)
                  .ok());
  EXPECT_THAT(std::string(ReadOverlay(overlay).status().message()),
              HasSubstr("as its path says"));
}

}  // namespace
}  // namespace optrail::tuning
