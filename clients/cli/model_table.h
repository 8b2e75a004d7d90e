#ifndef PLANEWISE_CLIENTS_CLI_MODEL_TABLE_H_
#define PLANEWISE_CLIENTS_CLI_MODEL_TABLE_H_
// A hosted model for people: plan beside what is allocated.

#include <string>

#include "planewise/v1/models.pb.h"

namespace planewise {

// A few lines: state, version, recipe, bytes, and the drift of actual from plan.
std::string ModelSummary(const v1::Model& model);

// One line per layer: shape, planes, planned and actual bytes, drift; then totals.
std::string LayersTable(const v1::Model& model);

// What stays with the trainer, grouped by why.
std::string LocalText(const v1::Model& model);

// One line per model.
std::string ModelsTable(const v1::ListModelsResponse& models);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_MODEL_TABLE_H_
