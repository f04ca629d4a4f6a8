# Which stores are built in, besides memory and sqlite: each brings its client library.
set(holdfast_optional_engines mysql postgres redis zookeeper etcd)
set(HOLDFAST_ENGINES "${holdfast_optional_engines}" CACHE STRING
  "Stores to build in besides memory and sqlite, of: ${holdfast_optional_engines} (redis brings redlock)")

set(holdfast_left_out)
foreach(engine IN LISTS holdfast_optional_engines)
  if(NOT engine IN_LIST HOLDFAST_ENGINES)
    list(APPEND holdfast_left_out ${engine})
  endif()
endforeach()
if("redis" IN_LIST holdfast_left_out)
  list(APPEND holdfast_left_out redlock)
endif()
if("mysql" IN_LIST holdfast_left_out AND "postgres" IN_LIST holdfast_left_out)
  list(APPEND holdfast_left_out relational)
endif()

# Takes the files that are about engines which are not built in out of a list; their path says so.
function(holdfast_leave_out files)
  set(kept ${${files}})
  foreach(engine IN LISTS holdfast_left_out)
    list(FILTER kept EXCLUDE REGEX "(^|[/_])${engine}[/_.][^/]*(/[^/]*)?$")
  endforeach()
  set(${files} ${kept} PARENT_SCOPE)
endfunction()

# HOLDFAST_WITHOUT_MYSQL and so on, for the few places that name all engines.
function(holdfast_tell_left_out target scope)
  if(holdfast_left_out)
    target_compile_definitions(${target} ${scope} HOLDFAST_WITHOUT_SOME)
  endif()
  foreach(engine IN LISTS holdfast_left_out)
    string(TOUPPER ${engine} upper)
    target_compile_definitions(${target} ${scope} HOLDFAST_WITHOUT_${upper})
  endforeach()
endfunction()
