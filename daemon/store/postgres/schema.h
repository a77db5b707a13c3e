// The tables of the cluster's database (docs/formats.md, section 14).
#pragma once

#include <string>

namespace culprit::store::postgres {

// One statement that brings the tables to this version. Several members may run it at once, and again.
// Versions only add, so that members of an earlier one go on during an upgrade. A role without the right to
// create needs tables that are there. An error of the database if the tables need a newer member.
std::string migration();

}  // namespace culprit::store::postgres
