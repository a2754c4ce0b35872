#include "fleet/schema.h"

namespace optrail::fleet {
namespace {

constexpr char kFleet1[] =
#include "fleet/fleet_1.inc"
    ;

constexpr char kFleet2[] =
#include "fleet/fleet_2.inc"
    ;

constexpr char kFleet3[] =
#include "fleet/fleet_3.inc"
    ;

constexpr char kFleet4[] =
#include "fleet/fleet_4.inc"
    ;

constexpr char kFleet5[] =
#include "fleet/fleet_5.inc"
    ;

}  // namespace

// A pilot records what it measured; who submits also sees what became of it.
const char kFleetRights[] =
#include "fleet/fleet_rights.inc"
    ;

const tracker::SchemaComponent& FleetComponent() {
  static const auto& component = *new tracker::SchemaComponent{
      "fleet", {kFleet1, kFleet2, kFleet3, kFleet4, kFleet5}};
  return component;
}

}  // namespace optrail::fleet
