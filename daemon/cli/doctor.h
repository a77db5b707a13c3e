// The rows of `culprit doctor` for people: in columns, each trouble with the command that mends it. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/doctor.h"

namespace culprit::cli {

std::string render_doctor(const std::vector<app::DoctorRow>& rows, bool color);

}  // namespace culprit::cli
