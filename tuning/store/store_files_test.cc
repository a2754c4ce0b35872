#include "tuning/store/store_files.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/operator_folders.h"
#include "tuning/store/store_test_fixture.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
