#ifndef OPTRAIL_TUNING_PROTO_MEASUREMENT_SETTINGS_TEXT_H_
#define OPTRAIL_TUNING_PROTO_MEASUREMENT_SETTINGS_TEXT_H_

// Texts of MeasurementSettings for people, and whether two of them differ in
// what can move a reading or an outcome.
//
//   const std::string change = DescribeSettingsChange(old.settings(),
//                                                     now.settings());
//   // "min sample 100 us -> 500 us; max samples 200 -> 50", or ""

#include <string>
#include <vector>

#include "tuning/proto/measurement_settings.pb.h"

namespace optrail::tuning {

// One "name value" per known field, in their order: "min sample 100 us".
std::vector<std::string> SettingsTexts(
    const proto::MeasurementSettings& settings);

// Describes the difference, "" if there is none. A field that either side does
// not know is no difference. Neither is the number of processes, which moves no
// reading (a comparison weighs them anyway), nor the binary: see
// IsAnotherBuild.
std::string DescribeSettingsChange(const proto::MeasurementSettings& before,
                                   const proto::MeasurementSettings& after);

// What both know and agree on, binary and processes included: the settings of
// something that was measured with one and went on with the other.
proto::MeasurementSettings CommonSettings(const proto::MeasurementSettings& a,
                                          const proto::MeasurementSettings& b);

// Equal for settings without a difference; "" if nothing is known. For grouping
// within a process, never to be stored.
std::string SettingsKey(const proto::MeasurementSettings& settings);

// Returns whether both name the program that measured, and not the same one.
bool IsAnotherBuild(const proto::MeasurementSettings& before,
                    const proto::MeasurementSettings& after);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_PROTO_MEASUREMENT_SETTINGS_TEXT_H_
