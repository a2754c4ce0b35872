#ifndef OPTRAIL_TRACKER_IMPORT_HYPERFINE_H_
#define OPTRAIL_TRACKER_IMPORT_HYPERFINE_H_

// The JSON of `hyperfine --export-json`, of any version since 1.0. See
// tracker/import/import.h.
//
// A command is a benchmark, named as hyperfine names it. Each of its runs is a
// process of its own and so evidence of its own. Runs that ended with another
// exit code than 0 (--ignore-failure) are labelled; a command that was killed
// by a signal has crashed.

#include "tracker/import/import.h"

namespace optrail::tracker {

// Never destroyed.
const Importer* HyperfineImporter();

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_HYPERFINE_H_
