#ifndef OPTRAIL_FLEET_ROW_VALUES_H_
#define OPTRAIL_FLEET_ROW_VALUES_H_

// For the queue alone: values of PostgreSQL's rows. NULL is "" and 0.
//
//   const int64_t job = Number(rows[0][0]);

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::fleet {

inline std::string Text(const tracker::Postgres::Value& value) {
  return value.value_or("");
}

inline int64_t Number(const tracker::Postgres::Value& value) {
  int64_t number = 0;
  (void)absl::SimpleAtoi(Text(value), &number);
  return number;
}

inline absl::Duration SecondsOf(const tracker::Postgres::Value& value) {
  double seconds = 0;
  (void)absl::SimpleAtod(Text(value), &seconds);
  return absl::Seconds(seconds);
}

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_ROW_VALUES_H_
