#include "tracker/series/series_key.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

proto::BenchmarkKey Matmul() {
  proto::BenchmarkKey key;
  key.set_operator_name("matmul");
  key.set_device_kind(proto::CPU);
  for (const char* name : {"m", "n", "k"}) {
    proto::Dim* dim = key.mutable_shape()->add_dims();
    dim->set_name(name);
    dim->set_value(512);
  }
  key.mutable_shape()->add_data_types(proto::F32);
  key.set_selection(proto::TUNED);
  key.set_threads(1);
  key.set_cache_mode(proto::HOT);
  return key;
}

proto::BenchmarkKey Imported(const std::string& name) {
  proto::BenchmarkKey key;
  key.set_operator_name(name);
  return key;
}

TEST(SeriesKey, WritesOperatorsReadably) {
  EXPECT_EQ(CanonicalText(Matmul()),
            "matmul/cpu/m=512,n=512,k=512/f32/tuned/threads=1/hot");
  proto::BenchmarkKey named = Matmul();
  named.set_selection(proto::NAMED);
  named.set_config_name("openblas");
  named.set_version(2);
  EXPECT_EQ(CanonicalText(named),
            "matmul/cpu/m=512,n=512,k=512/f32/named=openblas/threads=1/hot/v2");
  EXPECT_EQ(TextWithoutVersion(named),
            "matmul/cpu/m=512,n=512,k=512/f32/named=openblas/threads=1/hot");
}

TEST(SeriesKey, KeepsImportedNamesForPeopleAndEscapesThemInTheCanonicalText) {
  EXPECT_EQ(CanonicalText(Imported("BM_Sort/1024")), "BM_Sort%2F1024");
  EXPECT_EQ(DisplayName(Imported("BM_Sort/1024")), "BM_Sort/1024");
}

TEST(SeriesKey, ParsesBackWhateverItWrites) {
  std::vector<proto::BenchmarkKey> keys = {Matmul()};
  for (const char* name :
       {"BM_Sort/1024", "-", "%2D", "a|b,c=d+e", "line\nbreak", "v2", "é",
        "matmul/cpu/m=512,n=512,k=512/f32/tuned/threads=1/hot"}) {
    keys.push_back(Imported(name));
    keys.push_back(Imported(name));
    keys.back().set_version(3);
    keys.push_back(Matmul());
    keys.back().set_operator_name(name);
    keys.push_back(Matmul());
    keys.back().set_selection(proto::NAMED);
    keys.back().set_config_name(name);
  }
  keys.push_back(Matmul());
  keys.back().clear_shape();
  keys.push_back(Matmul());
  keys.back().mutable_shape()->add_data_types(proto::BF16);
  keys.push_back(Matmul());
  keys.back().set_device_kind(static_cast<proto::DeviceKind>(77));
  std::set<std::string> texts;
  for (const proto::BenchmarkKey& key : keys) {
    const std::string text = CanonicalText(key);
    const auto parsed = ParseBenchmarkKey(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(CanonicalText(*parsed), text);
    EXPECT_EQ(parsed->operator_name(), key.operator_name());
    EXPECT_EQ(parsed->config_name(), key.config_name());
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), keys.size());  // none collide
}

TEST(SeriesKey, SeriesParsesBack) {
  SeriesKey key = {Matmul(), "cache|misses", "1/s", "nvidia-h200",
                   "feature/fast-path"};
  const std::string text = CanonicalText(key);
  EXPECT_EQ(text,
            "matmul/cpu/m=512,n=512,k=512/f32/tuned/threads=1/hot|"
            "cache%7Cmisses|1%2Fs|nvidia-h200|feature%2Ffast-path");
  const auto parsed = ParseSeriesKey(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->metric, key.metric);
  EXPECT_EQ(parsed->branch, key.branch);
  EXPECT_EQ(CanonicalText(*parsed), text);
}

TEST(SeriesKey, SaysWhatIsWrongWithAText) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "expected a benchmark"},
      {"a/b/c", "expected 7 components"},
      {"a%2", "two hexadecimal digits"},
      {"a%zz", "two hexadecimal digits"},
      {"a%41", "expected 'aA'"},
      {"m/tpu/m=1/f32/tuned/threads=1/hot", "expected a device"},
      {"m/cpu/m=x/f32/tuned/threads=1/hot", "a dimension like m=512"},
      {"m/cpu/m=1/f31/tuned/threads=1/hot", "expected a data type"},
      {"m/cpu/m=1/f32/best/threads=1/hot", "default, tuned or named=NAME"},
      {"m/cpu/m=1/f32/tuned/threads=x/hot", "expected threads=N"},
      {"m/cpu/m=1/f32/tuned/threads=1/warm", "expected hot or cold"},
      {"m/cpu/m=1/f32/tuned/threads=1/hot/2", "a version like v2"},
  };
  for (const auto& c : cases) {
    const auto parsed = ParseBenchmarkKey(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(c.message));
  }
  EXPECT_FALSE(ParseSeriesKey("a|b").ok());
}

}  // namespace
}  // namespace optrail::tracker
