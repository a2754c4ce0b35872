#ifndef OPTRAIL_TUNING_STORE_TUNED_ENTRY_H_
#define OPTRAIL_TUNING_STORE_TUNED_ENTRY_H_

// One entry of a file of tuned configs: its key, its text for people, and its
// short form.
//
//   ShortenEntry(&tuned);  // as a session left it
//   std::string key = EntryText(tuned);  // "m=4/f32, threads 1, hot"
//
// Reading and writing the files is store_files.h's.

#include <cstdint>
#include <string>
#include <tuple>

#include "tuning/proto/store.pb.h"

namespace optrail::tuning {

// The key of an entry and the order of a file: shape, threads, cache mode; then
// backend, launch mode, objective and devices.
using EntryKey =
    std::tuple<std::string, int32_t, int, std::string, int, std::string, int>;
EntryKey EntryKeyOf(const proto::TunedConfig& tuned);
EntryKey EntryKeyOf(const proto::BestBackend& best);

// The key for people: "m=4/f32, threads 1, hot, openblas, graph".
std::string EntryText(const proto::TunedConfig& tuned);
std::string EntryText(const proto::BestBackend& best);

// Returns whether all fields are the same.
bool Same(const proto::TunedConfig& a, const proto::TunedConfig& b);
bool Same(const proto::BestBackend& a, const proto::BestBackend& b);

// True if its session left the default as it was.
bool DefaultStayed(const proto::TunedConfig& tuned);

// Removes what the session's record holds in full: measurements, the proof of a
// default that stayed (the entry then `ties`), and a candidate's knobs, one a
// line, for which its canonical text stands. Entries of earlier versions have
// all these; `config` must be canonical.
void ShortenEntry(proto::TunedConfig* tuned);

// The default's time over the entry's; 0 if one of them is unknown.
double SpeedUpOverDefault(const proto::TunedConfig& tuned);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_TUNED_ENTRY_H_
