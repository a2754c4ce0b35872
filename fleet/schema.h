#ifndef OPTRAIL_FLEET_SCHEMA_H_
#define OPTRAIL_FLEET_SCHEMA_H_

// The tables of jobs, tasks and pilots, beside those of the history
// (tracker/history/postgres/schema.h).

#include "tracker/history/postgres/schema.h"

namespace optrail::fleet {

const tracker::SchemaComponent& FleetComponent();
extern const char kFleetRights[];

}  // namespace optrail::fleet

#endif  // OPTRAIL_FLEET_SCHEMA_H_
