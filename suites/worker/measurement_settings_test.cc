#include "suites/worker/measurement_settings.h"

#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "suites/stopwatch/stopwatch.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::suites {
namespace {

using proto::MeasurementSettings;

TEST(SettingsOf, FillsEveryFieldThatIsNotTheDrivers) {
  const MeasurementSettings settings =
      SettingsOf(DefaultSamplingOptions(), WorkerOptions(), proto::CPU);
  const google::protobuf::Descriptor& type = *MeasurementSettings::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    switch (field.number()) {
      case MeasurementSettings::kProcessesFieldNumber:
      case MeasurementSettings::kAttemptsPerProcessFieldNumber:
      case MeasurementSettings::kRaceRatioFieldNumber:
        break;
      default:
        EXPECT_TRUE(settings.GetReflection()->HasField(settings, &field))
            << field.name();
    }
  }
  EXPECT_EQ(settings.binary_fingerprint().size(), 16);
}

TEST(SettingsOf, FollowsWhatTheStopwatchAndTheWorkersAreTold) {
  const MeasurementSettings before =
      SettingsOf(DefaultSamplingOptions(), WorkerOptions(), proto::CPU);
  proto::SamplingOptions sampling = DefaultSamplingOptions();
  sampling.set_max_time_ns(500'000'000);
  WorkerOptions worker;
  worker.config_deadline = absl::Seconds(20);
  worker.max_config_bytes = int64_t{2} << 30;
  const MeasurementSettings after = SettingsOf(sampling, worker, proto::CPU);
  EXPECT_EQ(tuning::DescribeSettingsChange(before, after),
            "max sampling 200 ms -> 500 ms");
  EXPECT_EQ(after.config_deadline_ns(), 20'000'000'000);
  EXPECT_EQ(after.max_config_bytes(), worker.max_config_bytes);
}

}  // namespace
}  // namespace optrail::suites
