#include "tracker/history/record.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/hash/crc32c.h"
#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

proto::Run SmallRun() {
  proto::Run run;
  run.set_run_id("20261120T090807Z-1a2b3c4d5e6f");
  run.set_suite("smoke");
  for (int b = 0; b < 3; ++b) {
    proto::BenchmarkResult* result = run.add_results();
    result->mutable_key()->set_operator_name("BM_" + std::to_string(b));
    proto::Measurement* measurement = result->add_measurements();
    measurement->set_calls_per_sample(10);
    for (int i = 0; i < 5; ++i) measurement->add_sample_ns(1000 + i);
  }
  run.set_elapsed_ns(77);
  return run;
}

TEST(Record, ReadsBackWhatItWrote) {
  const proto::Run run = SmallRun();
  proto::Run read;
  ASSERT_TRUE(DecodeRecord(EncodeRecord(run), &read).ok());
  EXPECT_EQ(read.SerializeAsString(), run.SerializeAsString());
}

TEST(Record, IsAPlainMessageWithAChecksumAtItsEnd) {
  proto::Run read;
  ASSERT_TRUE(read.ParseFromString(EncodeRecord(SmallRun())));
  EXPECT_NE(read.checksum(), 0);
  EXPECT_EQ(read.results_size(), 3);
}

TEST(Record, NoticesEveryFlippedBitAndEveryTruncation) {
  const std::string bytes = EncodeRecord(SmallRun());
  proto::Run read;
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(DecodeRecord(bytes.substr(0, i), &read).ok()) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
      EXPECT_FALSE(DecodeRecord(damaged, &read).ok()) << i << ":" << bit;
    }
  }
}

// Adds the end of a record of `format`: field 99 + format.
std::string OfFormat(int format, std::string body) {
  body.push_back(static_cast<char>(0xa5 + 8 * (format - 1)));
  body.push_back('\x06');
  const uint32_t checksum = Crc32c(body);
  for (int shift = 0; shift < 32; shift += 8) {
    body.push_back(static_cast<char>(checksum >> shift & 0xff));
  }
  return body;
}

// A reader that drops a key's backend would take its series for another one: it
// must not find a record.
TEST(Record, WhatOlderReadersWouldTakeForAnotherBenchmarkTheyRefuse) {
  const std::string old = EncodeRecord(SmallRun());
  EXPECT_EQ(old.substr(old.size() - 6, 2), "\xa5\x06");
  for (int part = 0; part < 5; ++part) {
    proto::Run run = SmallRun();
    proto::BenchmarkKey* key = run.mutable_results(2)->mutable_key();
    if (part == 0) key->set_backend("openblas");
    if (part == 1) key->set_launch_mode(proto::GRAPH);
    if (part == 2) key->set_objective("joules");
    if (part == 3) key->set_devices(2);
    if (part == 4) key->mutable_shape()->add_attributes()->set_name("stride");
    const std::string bytes = EncodeRecord(run);
    EXPECT_EQ(bytes.substr(bytes.size() - 6, 2), "\xad\x06") << part;
    proto::Run read;
    ASSERT_TRUE(DecodeRecord(bytes, &read).ok()) << part;
    EXPECT_EQ(read.SerializeAsString(), run.SerializeAsString());
    // A flipped bit does not make one format of another, either way.
    for (std::string changed : {bytes, old}) {
      changed[changed.size() - 6] ^= 8;
      EXPECT_FALSE(DecodeRecord(changed, &read).ok());
    }
  }
  proto::Session session;
  session.mutable_task()->set_operator_name("matmul");
  EXPECT_EQ(EncodeRecord(session).substr(EncodeRecord(session).size() - 6, 1),
            "\xa5");
  session.mutable_task()->set_backend("openblas");
  EXPECT_EQ(EncodeRecord(session).substr(EncodeRecord(session).size() - 6, 1),
            "\xad");
}

TEST(Record, ANewerFormatIsRefusedByNameAndIsNoDamage) {
  proto::Run read;
  const absl::Status status =
      DecodeRecord(OfFormat(3, SmallRun().SerializeAsString()), &read);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("newer Optrail: its format is 3, this one reads up to 2"));
  std::string damaged = OfFormat(3, SmallRun().SerializeAsString());
  damaged[3] ^= 1;
  EXPECT_EQ(DecodeRecord(damaged, &read).code(), absl::StatusCode::kDataLoss);
}

TEST(Record, SaysHowAFileIsDamaged) {
  const std::string bytes = EncodeRecord(SmallRun());
  proto::Run read;
  EXPECT_THAT(std::string(DecodeRecord("", &read).message()),
              HasSubstr("empty"));
  EXPECT_THAT(std::string(DecodeRecord("abc", &read).message()),
              HasSubstr("cut off"));
  EXPECT_THAT(std::string(DecodeRecord(bytes.substr(0, 40), &read).message()),
              HasSubstr("cut off"));
  std::string changed = bytes;
  changed[5] ^= 1;
  EXPECT_THAT(std::string(DecodeRecord(changed, &read).message()),
              HasSubstr("bytes were changed"));
}

TEST(Record, KeepsFieldsOfANewerSchemaThroughARewrite) {
  proto::Run run = SmallRun();
  run.GetReflection()->MutableUnknownFields(&run)->AddLengthDelimited(
      4711, "from the future");
  proto::BenchmarkResult* result = run.mutable_results(1);
  result->GetReflection()->MutableUnknownFields(result)->AddVarint(99, 5);
  proto::Run once, twice;
  ASSERT_TRUE(DecodeRecord(EncodeRecord(run), &once).ok());
  ASSERT_TRUE(DecodeRecord(EncodeRecord(once), &twice).ok());
  EXPECT_EQ(twice.SerializeAsString(), run.SerializeAsString());
  EXPECT_EQ(twice.GetReflection()
                ->GetUnknownFields(twice)
                .field(0)
                .length_delimited(),
            "from the future");
}

TEST(Record, SkipsResultsAndKeepsTheRest) {
  proto::Run header;
  int results = 0;
  ASSERT_TRUE(DecodeRecordWithout({proto::Run::kResultsFieldNumber},
                                  EncodeRecord(SmallRun()), &header, &results)
                  .ok());
  EXPECT_EQ(results, 3);
  EXPECT_EQ(header.results_size(), 0);
  EXPECT_EQ(header.suite(), "smoke");
  EXPECT_EQ(header.elapsed_ns(), 77);
}

TEST(Record, SetsResultsApartFromTheRest) {
  const proto::Run run = SmallRun();
  const std::string bytes = EncodeRecord(run);
  proto::Run rest;
  std::vector<absl::string_view> parts;
  ASSERT_TRUE(
      DecodeRecordApart(proto::Run::kResultsFieldNumber, bytes, &rest, &parts)
          .ok());
  EXPECT_EQ(rest.results_size(), 0);
  EXPECT_EQ(rest.elapsed_ns(), 77);
  ASSERT_EQ(parts.size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(std::string(parts[i]), run.results(i).SerializeAsString());
    proto::BenchmarkResult part;
    ASSERT_TRUE(DecodePart(parts[i], &part).ok());
    EXPECT_EQ(part.key().operator_name(), "BM_" + std::to_string(i));
  }
  EXPECT_FALSE(DecodeRecordApart(proto::Run::kResultsFieldNumber,
                                 absl::string_view(bytes).substr(1), &rest,
                                 &parts)
                   .ok());
  proto::BenchmarkResult part;
  EXPECT_TRUE(absl::IsDataLoss(DecodePart("\x0a\x7f", &part)));
}

TEST(Record, RefusesTimesThatNoMeasurementCanYield) {
  const auto message_after = [](auto change) {
    proto::Run run = SmallRun();
    change(run.mutable_results(1)->mutable_measurements(0));
    const absl::Status status = ValidateRun(run);
    EXPECT_THAT(std::string(status.message()), HasSubstr("'BM_1'"));
    return std::string(status.message());
  };
  using M = proto::Measurement;
  EXPECT_TRUE(ValidateRun(SmallRun()).ok());
  EXPECT_THAT(message_after([](M* m) { m->set_sample_ns(2, -5); }),
              HasSubstr("sample_ns is -5"));
  EXPECT_THAT(message_after([](M* m) { m->set_calls_per_sample(0); }),
              HasSubstr("calls_per_sample is 0"));
  EXPECT_THAT(message_after([](M* m) { m->set_median_ns(NAN); }),
              HasSubstr("median_ns is nan"));
  EXPECT_THAT(message_after([](M* m) { m->set_median_ns(-1); }),
              HasSubstr("median_ns is -1"));
  EXPECT_THAT(message_after([](M* m) {
                proto::MetricSamples* metric = m->add_metrics();
                metric->set_metric("joules");
                metric->add_values(INFINITY);
              }),
              HasSubstr("metric 'joules' is inf"));

  proto::Session session;
  session.add_trials()->set_time_ns(-3);
  EXPECT_THAT(std::string(ValidateSession(session).message()),
              HasSubstr("trial 0"));
}

}  // namespace
}  // namespace optrail::tracker
