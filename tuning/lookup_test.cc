#include "tuning/lookup.h"

#include <string>

#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

using ::testing::HasSubstr;

constexpr char kFolder[] = "tuning/testdata/stored_2026_11/store";

Lookup::Question Matmul() {
  Lookup::Question question;
  question.operator_name = "matmul";
  question.hardware_id = "amd-epyc-zen4-2c";
  question.kernel_id = "754948d68a07b6be";
  return question;
}

Lookup LoadOrDie() {
  auto lookup = Lookup::Load({kFolder});
  EXPECT_TRUE(lookup.ok()) << lookup.status();
  return *std::move(lookup);
}

TEST(LookupTest, AnswersFromAFolderOfFiles) {
  const Lookup lookup = LoadOrDie();
  const auto asked = Lookup::Prepare(Matmul(), "m=64,n=48,k=32/f32");
  ASSERT_TRUE(asked.ok()) << asked.status();
  const Lookup::Answer answer = lookup.Find(*asked);
  EXPECT_EQ(answer.source, LookupSource::kExact);
  EXPECT_FALSE(answer.unverified);
  EXPECT_EQ(answer.Int("mr", 1), 6);
  EXPECT_TRUE(answer.Bool("pack_a", false));
  EXPECT_EQ(answer.Variant("thread_split", ""), "rows");
  // Another type, or no such knob.
  EXPECT_EQ(answer.Int("pack_a", 7), 7);
  EXPECT_EQ(answer.Variant("nosuch", "x"), "x");
}

TEST(LookupTest, NearestNeedsAModelAndNothingIsTheKernelsDefault) {
  const Lookup lookup = LoadOrDie();
  const auto asked = *Lookup::Prepare(Matmul(), "m=128,n=48,k=32/f32");
  EXPECT_EQ(lookup.Find(asked).config, nullptr);
  const auto always = [](const proto::Config&) { return true; };
  const Lookup::Answer near = lookup.Find(asked, always, always);
  EXPECT_EQ(near.source, LookupSource::kNearest);
  EXPECT_THAT(near.warning, HasSubstr("m=64,n=48,k=32/f32"));
  const Lookup::Answer none = lookup.Find(
      *Lookup::Prepare(Matmul(), "m=64,n=48,k=32/f16"), always, always);
  EXPECT_EQ(none.config, nullptr);
  EXPECT_EQ(none.Int("mr", 4), 4);
  Lookup::Question blas = Matmul();
  blas.backend = "openblas";
  EXPECT_EQ(lookup.Find(*Lookup::Prepare(blas, "m=64,n=48,k=32/f32")).config,
            nullptr);
  blas.backend = "cpu";
  EXPECT_NE(lookup.Find(*Lookup::Prepare(blas, "m=64,n=48,k=32/f32")).config,
            nullptr);
}

TEST(LookupTest, WhatTheServiceCannotRunIsNoAnswer) {
  const Lookup lookup = LoadOrDie();
  const auto nothing = [](const proto::Config&) { return false; };
  const Lookup::Answer answer =
      lookup.Find(*Lookup::Prepare(Matmul(), "m=64,n=48,k=32/f32"), nothing);
  EXPECT_EQ(answer.config, nullptr);
  EXPECT_THAT(answer.warning, HasSubstr("is not valid here"));
}

TEST(LookupTest, WrongQuestionsAndFilesAreNamed) {
  const auto error = [](auto change) {
    Lookup::Question question = Matmul();
    change(question);
    return std::string(Lookup::Prepare(question, "m=1/f32").status().message());
  };
  EXPECT_THAT(error([](auto& q) { q.operator_name = ""; }),
              HasSubstr("operator_name"));
  EXPECT_THAT(error([](auto& q) { q.threads = 0; }), HasSubstr("threads is 0"));
  EXPECT_THAT(error([](auto& q) { q.device = "tpu"; }), HasSubstr("\"tpu\""));
  EXPECT_THAT(error([](auto& q) { q.cache_mode = "warm"; }),
              HasSubstr("\"warm\""));
  EXPECT_THAT(error([](auto& q) { q.backend = "best"; }), HasSubstr("best"));
  EXPECT_FALSE(Lookup::Prepare(Matmul(), "m=0/f32").ok());
  EXPECT_TRUE(absl::IsNotFound(Lookup::Load({"no/such/file"}).status()));
  const std::string broken = ::testing::TempDir() + "/broken.textproto";
  ASSERT_TRUE(WriteFileAtomically(broken, "operator_name: 'x'\nnonsense").ok());
  EXPECT_THAT(std::string(Lookup::Load({broken}).status().message()),
              HasSubstr("broken.textproto:2:"));
}

// Copies point to what they share, not to the original.
TEST(LookupTest, APreparedQuestionOutlivesItsOriginal) {
  const Lookup lookup = LoadOrDie();
  auto original = std::make_unique<Lookup::Prepared>(
      *Lookup::Prepare(Matmul(), "m=64,n=48,k=32/f32"));
  const Lookup::Prepared copy = *original;
  original.reset();
  EXPECT_EQ(lookup.Find(copy).source, LookupSource::kExact);
  EXPECT_EQ(copy.question().operator_name, "matmul");
}

}  // namespace
}  // namespace optrail::tuning
