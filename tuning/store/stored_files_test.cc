// Files of tuned configs that earlier versions wrote: tuning/testdata/stored_*.

#include "absl/strings/str_replace.h"
#include "base/file/file.h"
#include "base/text/textproto.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store.h"
#include "tuning/store/tuned_text.h"

namespace optrail::tuning {
namespace {

constexpr char kStored[] = "tuning/testdata/stored_2026_11/store";

TEST(StoredFilesTest, AreWrittenBackToTheByteButForTheDayOfTheSession) {
  for (const char* name : {"add.textproto", "matmul.textproto"}) {
    const auto text = ReadFile(JoinPath(kStored, name));
    ASSERT_TRUE(text.ok()) << text.status();
    const auto configs = ParseTunedConfigs(*text, name);
    ASSERT_TRUE(configs.ok()) << configs.status();
    EXPECT_EQ(configs->tuned(0).date(), "2026-11-21");
    const std::string written = FormatTunedConfigs(*configs);
    EXPECT_EQ(written,
              absl::StrReplaceAll(*text, {{"  date: \"2026-11-21\"\n", ""}}));
    const auto again = ParseTunedConfigs(written, name);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(PrintTextProto(*again), PrintTextProto(*configs));
  }
}

TEST(StoredFilesTest, AreFoundExactlyAsTheyWere) {
  StoreOptions options;
  for (const char* name : {"add.textproto", "matmul.textproto"}) {
    options.checked_in.push_back({name, *ReadFile(JoinPath(kStored, name))});
  }
  const auto store = TunedConfigStore::Load(options);
  ASSERT_TRUE(store.ok()) << store.status();
  const proto::Shape shape = *ParseShape("m=64,n=48,k=32/f32");
  LookupRequest request;
  request.operator_name = "matmul";
  request.shape = &shape;
  request.hardware_id = "amd-epyc-zen4-2c";
  request.kernel_id = "754948d68a07b6be";
  const LookupResult found = store->Lookup(request);
  EXPECT_EQ(found.source, LookupSource::kExact);
  EXPECT_FALSE(found.unverified);
  EXPECT_EQ(found.warning, "");
  EXPECT_EQ(CanonicalText(*found.config),
            "k_unroll=4,kc=32,m_tiles=16,mr=6,n_tiles=4,nr_vectors=1,"
            "outer_loop=columns,pack_a=true,pack_b=true,prefetch_steps=0,"
            "stays_in_l1=b,tasks_per_thread=1,thread_split=rows");
}

}  // namespace
}  // namespace optrail::tuning
