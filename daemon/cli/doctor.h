// Output of `culprit doctor`: rows in columns, each problem with its remedy. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/doctor/doctor.h"

namespace culprit::cli {

std::string render_doctor(const std::vector<app::DoctorRow>& rows, bool color);

}  // namespace culprit::cli
