! Two workers of an MPI program sum their numbers; the communicator is Fortran's.
module work
  use choir
  implicit none
contains
  function add(r, user) bind(c) result(status)
    type(choir_replica), intent(inout) :: r
    type(c_ptr), value :: user
    integer(c_int) :: status
    type(c_ptr) :: t
    integer, pointer :: total
    call c_f_pointer(user, total)
    t = choir_fill(r%frame, CHOIR_F32, choir_shape(), real(choir_replica_id(r) + 1, c_double))
    t = choir_replica_all_reduce(r, CHOIR_SUM_VALUE, t)
    total = nint(choir_tensor_number(t))
    status = choir_frame_status(r%frame)
  end function
end module

program workers
  use work
  use mpi
  implicit none
  type(choir_strategy_options) :: options
  type(c_ptr) :: cluster, strategy
  integer, target :: total = 0
  integer :: error, level, own
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, level, error)
  call MPI_Comm_dup(MPI_COMM_WORLD, own, error)
  cluster = choir_cluster_from_mpi_fortran(own)
  call choir_must_have(cluster)
  options%cluster = cluster
  strategy = choir_multi_worker_mirrored_strategy_new(options)
  call choir_must_have(strategy)
  call choir_must(choir_strategy_run(strategy, c_funloc(add), c_loc(total), c_null_ptr))
  print '(a, i0, a, i0, a, i0)', "worker ", choir_cluster_worker(cluster), " of ", &
      choir_cluster_workers(cluster), ": sum ", total
  call choir_strategy_free(strategy)
  call choir_cluster_free(cluster)
  call MPI_Finalize(error)
end program
