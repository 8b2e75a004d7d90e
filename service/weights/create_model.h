#ifndef PLANEWISE_SERVICE_WEIGHTS_CREATE_MODEL_H_
#define PLANEWISE_SERVICE_WEIGHTS_CREATE_MODEL_H_
// ModelCatalog::Create: plan, admit, load, publish; or nothing at all.

#include <memory>

#include "service/auth/principal.h"
#include "service/weights/catalog_job.h"
#include "service/weights/catalog_requests.h"
#include "service/weights/catalog_state.h"

namespace planewise {

// As ModelCatalog::Create.
JobTicket CreateModel(const std::shared_ptr<CatalogState>& state, const Principal& principal,
                      CreateModelSpec spec, ProgressCallback progress,
                      DoneCallback<ModelDescription> done);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_CREATE_MODEL_H_
