#include "tuning/store/store.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/bucket.h"
#include "tuning/store/operator_folders.h"
#include "tuning/store/store_files.h"
#include "tuning/store/store_test_fixture.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace optrail::tuning
