#ifndef PLANEWISE_SERVICE_WEIGHTS_STORED_MODELS_H_
#define PLANEWISE_SERVICE_WEIGHTS_STORED_MODELS_H_
// ModelCatalog::Save, Delete and LoadStored: models and the store.
//
// Not here: the store itself (core/checkpoint/model_store.h).

#include <memory>
#include <string>
#include <vector>

#include "service/auth/principal.h"
#include "service/weights/catalog_job.h"
#include "service/weights/catalog_requests.h"
#include "service/weights/catalog_state.h"

namespace planewise {

// As ModelCatalog::Save.
JobTicket SaveModel(const std::shared_ptr<CatalogState>& state, const Principal& principal,
                    SaveSpec spec, ProgressCallback progress, DoneCallback<SaveOutcome> done);

// As ModelCatalog::Delete.
void DeleteModel(const std::shared_ptr<CatalogState>& state, const Principal& principal,
                 const DeleteModelSpec& spec, DoneCallback<DeleteOutcome> done);

// As ModelCatalog::LoadStored.
void LoadStoredModels(const std::shared_ptr<CatalogState>& state,
                      DoneCallback<std::vector<std::string>> done);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_STORED_MODELS_H_
