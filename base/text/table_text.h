#ifndef OPTRAIL_BASE_TEXT_TABLE_TEXT_H_
#define OPTRAIL_BASE_TEXT_TABLE_TEXT_H_

// Lays a table out as lines of text for Table::ToText, and for nobody else.

#include <string>
#include <vector>

#include "base/text/table.h"

namespace optrail {

// The lines that Table::ToText returns.
std::string TableText(const std::vector<Column>& columns,
                      const std::vector<std::vector<Cell>>& rows, int width);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_TABLE_TEXT_H_
