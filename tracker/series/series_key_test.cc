#include "tracker/series/series_key.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

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

proto::BenchmarkKey Conv(const std::string& backend) {
  proto::BenchmarkKey key = Matmul();
  key.set_operator_name("conv2d");
  key.set_device_kind(proto::CUDA);
  key.set_backend(backend);
  proto::Attribute* stride = key.mutable_shape()->add_attributes();
  stride->set_name("stride");
  stride->set_int_(0);
  proto::Attribute* act = key.mutable_shape()->add_attributes();
  act->set_name("act");
  act->set_variant("relu");
  return key;
}

TEST(SeriesKey, WritesWhatAKeyHasBesideTheUsual) {
  proto::BenchmarkKey blas = Matmul();
  blas.set_backend("openblas");
  blas.set_selection(proto::DEFAULT);
  EXPECT_EQ(CanonicalText(blas),
            "matmul/cpu:openblas/m=512,n=512,k=512/f32/default/threads=1/hot");
  proto::BenchmarkKey conv = Conv("cudnn");
  conv.set_launch_mode(proto::GRAPH);
  conv.set_devices(2);
  conv.set_objective("joules");
  conv.set_version(2);
  EXPECT_EQ(CanonicalText(conv),
            "conv2d/cuda:cudnn/m=512,n=512,k=512/act=relu,stride=0/f32/"
            "tuned=joules/threads=1/hot/graph/devices=2/v2");
  EXPECT_EQ(TextWithoutVersion(conv) + "/v2", CanonicalText(conv));
}

// Two keys of one text would be one series: each field, alone and with hostile
// values, has a text of its own that reads back.
TEST(SeriesKey, NoTwoKeysShareATextWhateverTheyHoldBesideTheUsual) {
  std::vector<proto::BenchmarkKey> keys = {Matmul(), Conv("")};
  for (const char* name : {"-", "openblas", "a/b", "x|y", "a=b,c", "%2D", "v2",
                           "graph", "a:b", "devices=2", "\n"}) {
    keys.push_back(Matmul());
    keys.back().set_backend(name);
    for (const auto selection :
         {proto::TUNED, proto::DEFAULT, proto::CONFIG_SELECTION_UNSPECIFIED,
          static_cast<proto::ConfigSelection>(9)}) {
      keys.push_back(Matmul());
      keys.back().set_selection(selection);
      keys.back().set_objective(name);
    }
    keys.push_back(Matmul());
    proto::Attribute* attribute = keys.back().mutable_shape()->add_attributes();
    attribute->set_name("a");
    attribute->set_variant(name);
    keys.push_back(Matmul());
    attribute = keys.back().mutable_shape()->add_attributes();
    attribute->set_name(name);
    attribute->set_int_(-1);
    keys.push_back(Imported(name));
    keys.back().set_backend("b");
  }
  for (const int number : {1, 2, 7, -1}) {
    keys.push_back(Matmul());
    keys.back().set_launch_mode(static_cast<proto::LaunchMode>(number));
    keys.push_back(Matmul());
    keys.back().set_devices(number);
  }
  keys.push_back(Conv(""));
  keys.back().mutable_shape()->clear_data_types();
  keys.push_back(Conv(""));
  keys.back().mutable_shape()->clear_dims();
  std::set<std::string> texts;
  for (const proto::BenchmarkKey& key : keys) {
    const std::string text = CanonicalText(key);
    EXPECT_TRUE(texts.insert(text).second) << text;
    const auto parsed = ParseBenchmarkKey(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(CanonicalText(*parsed), text);
    EXPECT_EQ(parsed->backend(), key.backend());
    EXPECT_EQ(parsed->objective(), key.objective());
    EXPECT_EQ(parsed->launch_mode(), key.launch_mode());
    EXPECT_EQ(parsed->devices(), key.devices());
    EXPECT_EQ(tuning::CanonicalText(parsed->shape().attributes()),
              tuning::CanonicalText(key.shape().attributes()));
  }
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
      {"a/b/c", "expected at least 7 components"},
      {"a%2", "two hexadecimal digits"},
      {"a%zz", "two hexadecimal digits"},
      {"a%41", "expected 'aA'"},
      {"m/tpu/m=1/f32/tuned/threads=1/hot", "expected a device"},
      {"m/cpu/m=x/f32/tuned/threads=1/hot", "a dimension like m=512"},
      {"m/cpu/m=1/f31/tuned/threads=1/hot", "expected a data type"},
      {"m/cpu/m=1/f32/best/threads=1/hot",
       "default, tuned, tuned=OBJECTIVE or named=NAME"},
      {"m/cpu/m=1/f32/tuned/threads=x/hot", "expected threads=N"},
      {"m/cpu/m=1/f32/tuned/threads=1/warm", "expected hot or cold"},
      {"m/cpu/m=1/f32/tuned/threads=1/hot/warp", "expected stream, graph"},
      {"m/cpu/m=1/f32/tuned/threads=1/hot/devices=0", "expected 'm/cpu"},
      {"m/cpu/m=1/f32/tuned/threads=1/hot/v2/graph", "expected 'm/cpu"},
      {"m/cpu/m=1/f32/tuned/threads=1/hot/graph/graph", "expected 'm/cpu"},
      {"m/cpu/m=1/b=1,a=1/f32/tuned/threads=1/hot", "a=1,b=1"},
      {"m/1/m=1/f32/tuned/threads=1/hot", "expected 'm/cpu"},
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
