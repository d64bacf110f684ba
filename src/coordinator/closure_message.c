// Sets of tensors as bytes, and back.
#include "coordinator/closure_message.h"

#include "base/alloc.h"
#include "value/value.h"

void chi_shape_pack(chi_pack *to, choir_dtype dtype, const choir_shape *shape)
{
	chi_pack_u32(to, (uint32_t) dtype);
	chi_pack_u32(to, (uint32_t) shape->rank);
	for (int i = 0; i < shape->rank; i++)
		chi_pack_u64(to, (uint64_t) shape->dim[i]);
}

void chi_shape_unpack(chi_unpack *u, choir_dtype *dtype, choir_shape *shape)
{
	*dtype = (choir_dtype) chi_unpack_u32(u);
	*shape = (choir_shape){ .rank = (int) chi_unpack_u32(u) };
	u->failed |= shape->rank < 0 || shape->rank > CHOIR_MAX_RANK || chi_dtype_size(*dtype) == 0;
	for (int i = 0; i < shape->rank && !u->failed; i++) {
		shape->dim[i] = (int64_t) chi_unpack_u64(u);
		u->failed |= shape->dim[i] < 0;
	}
}

choir_status chi_values_pack(choir_values *set, chi_pack *to)
{
	chi_pack_u32(to, set == NULL ? 0 : (uint32_t) set->n);
	for (size_t i = 0; set != NULL && i < set->n; i++) {
		choir_value *value = set->leaf[i].value;
		choir_tensor *t = value->kind == CHOIR_VALUE_PLAIN ? choir_value_tensor(value) : NULL;
		if (t == NULL)
			return choir_fail(CHOIR_INVALID,
					"leaf \"%.100s\": it is not a plain tensor, and only these travel",
					set->leaf[i].name);
		const size_t bytes = t->is_number
				? sizeof t->number
				: (size_t) choir_shape_elements(&t->shape) * chi_dtype_size(t->dtype);
		if (bytes > CHI_CLOSURE_MAX || to->bytes > CHI_CLOSURE_MAX - bytes)
			return choir_fail(CHOIR_INVALID,
					"leaf \"%.100s\": with its %zu bytes a closure's values have more than %d, "
					"the limit",
					set->leaf[i].name, bytes, CHI_CLOSURE_MAX);
		chi_pack_text(to, set->leaf[i].name);
		chi_shape_pack(to, t->is_number ? CHOIR_F64 : t->dtype, &t->shape);
		chi_pack_u64(to, bytes);
		chi_pack host = { 0 };
		if (t->is_number) {
			chi_pack_raw(to, &t->number, bytes);
		} else if (chi_grow(&host.data, &host.capacity, bytes + 1, 1)) {
			const choir_status status = choir_tensor_to_host(t, host.data, bytes);
			chi_pack_raw(to, host.data, bytes);
			chi_pack_free(&host);
			CHOIR_TRY(status);
		} else {
			return CHOIR_NO_MEMORY;
		}
	}
	return to->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
}

choir_status chi_values_unpack(choir_values *set, chi_unpack *u)
{
	const uint32_t n = chi_unpack_u32(u);
	for (uint32_t i = 0; i < n && !u->failed; i++) {
		char name[1024];
		choir_dtype dtype;
		choir_shape shape;
		size_t bytes;
		int64_t elements = 0;
		chi_unpack_text(u, name, sizeof name);
		chi_shape_unpack(u, &dtype, &shape);
		const void *data = chi_unpack_bytes(u, &bytes);
		if (u->failed)
			break;
		elements = choir_shape_elements(&shape);
		if (elements < 0 || (uint64_t) elements > bytes ||
				(size_t) elements * chi_dtype_size(dtype) != bytes)
			return choir_fail(
					CHOIR_CORRUPT, "leaf \"%.100s\": %zu bytes do not fit its shape", name, bytes);
		choir_tensor *t = choir_constant(choir_values_frame(set), dtype, shape, data);
		if (t == NULL)
			return choir_error_status();
		CHOIR_TRY(choir_values_set(set, name, choir_tensor_as_value(t)));
	}
	return chi_unpack_end(u, "VALUES");
}
