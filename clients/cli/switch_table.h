#ifndef PLANEWISE_CLIENTS_CLI_SWITCH_TABLE_H_
#define PLANEWISE_CLIENTS_CLI_SWITCH_TABLE_H_
// A mode switch's verdict for people: the roll-up, then weights with the same
// verdict for the same reasons together.

#include <string>

#include "planewise/v1/models.pb.h"

namespace planewise {

std::string SwitchText(const v1::ValidateModeSwitchResponse& validation, const v1::Recipe& target);

// May SwitchMode run?
bool SwitchRuns(const v1::ValidateModeSwitchResponse& validation);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_SWITCH_TABLE_H_
