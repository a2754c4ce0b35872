#ifndef OPTRAIL_TRACKER_IMPORT_NAME_VALUE_CSV_H_
#define OPTRAIL_TRACKER_IMPORT_NAME_VALUE_CSV_H_

// Plain CSV, for programs that have no format of their own. See
// tracker/import/import.h.
//
//   name,value,unit
//   parse/small,12.5,us
//   parse/large,3.25,ms
//   startup,18.5,MB
//
// The columns are name, value and, if wanted, unit and metric, in any order;
// without a header they are name, value and unit. A unit of ns, us, ms or s
// makes the value a time; no unit means ns. With any other unit it is the
// metric that `metric` or else the unit names. Names may be quoted as RFC 4180
// says. Rows of one name are samples of one process. Empty lines and those that
// begin with # are skipped.

#include "tracker/import/import.h"

namespace optrail::tracker {

// Never destroyed.
const Importer* NameValueCsvImporter();

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_NAME_VALUE_CSV_H_
