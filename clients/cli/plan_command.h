#ifndef PLANEWISE_CLIENTS_CLI_PLAN_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_PLAN_COMMAND_H_
// planewise plan: the bytes of a model before anything is loaded. Needs no
// daemon; reads headers and config.json, no weights.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddPlanCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_PLAN_COMMAND_H_
